//! The commands of all instances. Most gateways are of a few releases and declare the same, so
//! each list is here once, however many have it.

use angelia_core::commands::{Command, form_of};
use angelia_core::inbox::InstanceId;
use rpds::HashTrieMapSync;
use std::collections::HashMap;
use std::sync::Arc;

angelia_contract::limits! {
    /// Every node keeps them in memory, each list once. That is some forty of the largest; a hundred gateways of one release have one. A manifest beyond it is not kept, and its commands are counted as dropped.
    const MAX_OF_TENANT: usize = 1024 * 1024, bytes "the different manifests of a tenant's gateways together";
}

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

    /// Whether there is room for what one of a tenant's instances declares, beside what the others do.
    pub(super) fn has_room(&self, others: impl Iterator<Item = InstanceId>, commands: &[Command]) -> bool {
        let kept = others.filter_map(|instance| self.by_instance.get(&instance));
        let mut lists: HashMap<&str, &[Command]> =
            kept.map(|(form, commands)| (form.as_str(), &**commands)).collect();
        let form = form_of(commands);
        lists.insert(&form, commands);
        lists.into_values().map(|list| serde_json::json!(list).to_string().len()).sum::<usize>()
            <= MAX_OF_TENANT
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
    #[test]
    fn a_tenant_has_so_much_room_and_each_list_takes_it_once() {
        let mut all = Manifests::default();
        let large = |n: i64| {
            let description = "d".repeat(20 * 1024);
            vec![Command { name: format!("c{n}"), description, options: Vec::new() }]
        };
        for n in 0..50 {
            all.set(InstanceId(n), large(n));
            all.set(InstanceId(100 + n), large(0));
        }
        let others = |ids: std::ops::Range<i64>| ids.map(InstanceId);
        assert!(all.has_room(others(0..50), &large(7)), "it is there already");
        assert!(all.has_room(others(100..150), &large(60)), "they all have one");
        assert!(!all.has_room(others(0..50), &[large(60), large(61)].concat()));
        assert!(all.has_room(others(0..40), &[large(60), large(61)].concat()));
    }
}
