/** Dragging of an element by its handle: by mouse, pen and touch alike. */

interface PointerCallbacks {
  onMove: (event: PointerEvent) => void;
  /** Called once, with false if the drag was cancelled. */
  onEnd: (isDone: boolean) => void;
}

/** Follows the pointer that was pressed on a handle until it is released. Escape cancels. */
export function followPointer(event: PointerEvent, { onMove, onEnd }: PointerCallbacks): void {
  const handle = event.currentTarget as HTMLElement;
  event.preventDefault();
  handle.focus();
  handle.setPointerCapture(event.pointerId);
  const stop = new AbortController();
  const on = <Name extends "pointermove" | "pointerup" | "pointercancel" | "keydown">(
    name: Name,
    act: (event: HTMLElementEventMap[Name]) => void,
  ) => handle.addEventListener(name, act, { signal: stop.signal });
  const end = (isDone: boolean) => {
    stop.abort();
    onEnd(isDone);
  };
  on("pointermove", onMove);
  on("pointerup", () => end(true));
  on("pointercancel", () => end(false));
  on("keydown", (key) => {
    if (key.key === "Escape") end(false);
  });
}
