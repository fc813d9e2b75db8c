/** Focus after items are added or removed, and work after the focus has moved. */

/** For a button that removes itself and its item: keyboard focus moves to a neighbor. */
export function keepFocusNear(button: HTMLElement): void {
  const around: HTMLElement[] = [];
  for (let ancestor = button.parentElement; ancestor; ancestor = ancestor.parentElement)
    around.push(ancestor);
  requestAnimationFrame(() => {
    if (button.isConnected || document.activeElement !== document.body) return;
    const near = around.find((element) => element.isConnected);
    // Another page sets its own focus.
    if (!near?.closest("section, fieldset, form")) return;
    [...near.querySelectorAll<HTMLElement>("button, input, select")].at(-1)?.focus();
  });
}

/** For the click of a button below a list to which it adds an item: the focus moves into the item. */
export function focusAdded({ currentTarget }: Event, selector = "input, select"): void {
  const list = (currentTarget as HTMLElement).parentElement;
  requestAnimationFrame(() => list?.previousElementSibling?.querySelector<HTMLElement>(selector)?.focus());
}

/** Defined while the pointer is pressed. */
let waiting: (() => void)[] | undefined;

// Absent in tests of texts.
const page = globalThis.document as Document | undefined;
const onPointer = (type: string, handle: () => void) => page?.addEventListener(type, handle, true);

onPointer("pointerdown", () => {
  waiting ??= [];
});
for (const type of ["pointerup", "pointercancel"])
  onPointer(type, () => {
    // After the click.
    for (const run of waiting ?? []) setTimeout(run);
    waiting = undefined;
  });

/**
 * For work after a field has lost the focus: waits for the end of the click that moved it. A message that appears earlier
 * moves the button that is being clicked.
 */
export function afterPress(run: () => void): void {
  if (waiting) waiting.push(run);
  else run();
}
