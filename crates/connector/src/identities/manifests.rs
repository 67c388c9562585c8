//! The commands of all instances. Most gateways are of a few releases and declare the same, so
//! each list is here once, however many have it.

use angelia_core::commands::{Command, form_of};
use angelia_core::inbox::InstanceId;
use rpds::HashTrieMapSync;
use std::sync::Arc;

/// The commands of one instance.
pub(crate) type Commands = Arc<[Command]>;

/// The commands of all of them. A copy shares everything with the one it was made from.
#[derive(Clone, Default)]
pub(super) struct Manifests {
    by_instance: HashTrieMapSync<InstanceId, (String, Commands)>,
    /// Every list, and how many have it.
    lists: HashTrieMapSync<String, (Commands, usize)>,
}

impl Manifests {
    pub(super) fn is_empty(&self) -> bool {
        self.by_instance.is_empty()
    }

    pub(super) fn of(&self, instance: InstanceId) -> Commands {
        self.by_instance.get(&instance).map_or_else(Commands::default, |(_, commands)| commands.clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (InstanceId, Commands)> {
        self.by_instance.iter().map(|(instance, (_, commands))| (*instance, commands.clone()))
    }

    /// Sets what an instance declared; nothing takes it away.
    pub(super) fn set(&mut self, instance: InstanceId, commands: Vec<Command>) {
        if let Some((form, _)) = self.by_instance.get(&instance).cloned() {
            self.by_instance.remove_mut(&instance);
            match self.lists.get(&form).cloned() {
                Some((list, had @ 2..)) => self.lists.insert_mut(form, (list, had - 1)),
                _ => drop(self.lists.remove_mut(&form)),
            }
        }
        if commands.is_empty() {
            return;
        }
        let form = form_of(&commands);
        let (list, had) = self.lists.get(&form).cloned().unwrap_or_else(|| (commands.into(), 0));
        self.lists.insert_mut(form.clone(), (list.clone(), had + 1));
        self.by_instance.insert_mut(instance, (form, list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Vec<Command> {
        vec![Command { name: name.into(), ..Command::default() }]
    }

    #[test]
    fn the_same_commands_are_kept_once_and_go_with_the_last_who_has_them() {
        let mut all = Manifests::default();
        let [one, two] = [InstanceId(1), InstanceId(2)];
        all.set(one, named("new"));
        all.set(two, named("new"));
        assert!(Arc::ptr_eq(&all.of(one), &all.of(two)) && all.lists.size() == 1);
        all.set(two, named("help"));
        assert_eq!((all.of(one)[0].name.as_str(), all.of(two)[0].name.as_str()), ("new", "help"));
        all.set(two, named("new"));
        all.set(one, Vec::new());
        assert_eq!((all.of(one).len(), all.of(two).len(), all.lists.size()), (0, 1, 1));
        all.set(two, Vec::new());
        assert!(all.is_empty() && all.lists.is_empty());
    }
}
