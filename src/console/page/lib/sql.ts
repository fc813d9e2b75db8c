/** Parts of the page's own statements. */

import { quoted } from "../../../events/sql-text.ts";
import { project } from "./session.ts";

export { quoted };

/** The time of an event `e` in the project's time zone. */
export function localTime(): string {
  const zone = project.value?.timezone ?? "UTC";
  return zone === "UTC" ? "e.timestamp" : `timezone(${quoted(zone)}, timezone('UTC', e.timestamp))`;
}
