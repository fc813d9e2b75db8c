/** Messages of marks below the axis of charts. */

import { counted, number } from "../../lib/format.ts";

export const notes = {
  add: "Add note",
  title: "Notes",
  content: "Note",
  day: "Day",
  added: "The note is added.",
  removed: "The note is deleted.",
  remove: (content: string) => `Delete ${content}`,
  on: (count: number, day: string) => (count === 1 ? `1 note on ${day}` : `${count} notes on ${day}`),
  line: (content: string, author: string) => (author === "" ? content : `${content} (${author})`),
  changesOn: (count: number, day: string) => `${counted(count, "flag change", "flag changes")} on ${day}`,
  changeLine: (key: string, change: string, by: string, at: string) => `${key}: ${change}, ${by}, ${at}`,
  more: (count: number) => `${number(count)} more`,
  showChanges: "Show flag changes",
  hideChanges: "Hide flag changes",
};
