// The ways in which files come to the composer: chosen, photographed, dropped, pasted.

const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");

/** Hands every file that comes to `add(files, told)`; `told` says what was left out, if anything was. */
export function takeFiles({ attach, picker, camera, shooter, dropZone, field }, add) {
  for (const [button, input] of [
    [attach, picker],
    [camera, shooter],
  ]) {
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      add([...input.files]);
      // The same file may be chosen again.
      input.value = "";
    });
  }
  takeDropped(dropZone, add);
  field.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    // What is copied from a table or a text comes with a picture of itself: the words are meant.
    const rich = ["text/html", "text/rtf"].some((type) => event.clipboardData.types.includes(type));
    if (!files.length || (rich && event.clipboardData.getData("text/plain").trim())) return;
    event.preventDefault();
    add(files);
  });
}

function takeDropped(zone, add) {
  const over = (event) => {
    if (!carriesFiles(event)) return;
    zone.classList.toggle("dropping", event.type !== "drop" && event.type !== "dragleave");
    if (event.type !== "drop") return;
    const folders = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()?.isDirectory);
    const files = [...event.dataTransfer.files].filter((_, nth) => !folders[nth]);
    add(files, files.length < event.dataTransfer.files.length ? "Folders cannot be sent, only files." : "");
  };
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) zone.addEventListener(kind, over);
  // A file that misses its place would be opened instead of the page.
  for (const kind of ["dragover", "drop"])
    addEventListener(kind, (event) => carriesFiles(event) && event.preventDefault());
}
