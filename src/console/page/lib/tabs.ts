/** Other tabs of this browser share its session, and show objects that this tab changes. */

import { serverPath } from "./server.ts";

/** `changed`: an object was changed. `session`: a user has signed in or out. */
type TabMessage = "changed" | "session";

// Absent in old browsers: then a tab notices at its next request.
const channel = globalThis.BroadcastChannel && new BroadcastChannel(`flagkeep${serverPath}`);

/** Notifies the other tabs. */
export const notifyTabs = (message: TabMessage): void => channel?.postMessage(message);

/** Calls the handler for each message of another tab; returns a function that ends this. */
export function onTabMessage(expected: TabMessage, handle: () => void): () => void {
  const onMessage = ({ data }: MessageEvent<TabMessage>) => data === expected && handle();
  channel?.addEventListener("message", onMessage);
  return () => channel?.removeEventListener("message", onMessage);
}
