/** Files of records that no one would export, from a seed. */

import { isUtf8 } from "node:buffer";
import { WildEvents } from "../support/wild-events.ts";
import type { WrittenMembers } from "../support/wild-json.ts";

/** Writes lines of exports of events that are nearly right, or strange in every way that is known to matter. */
export class WildRecords extends WildEvents {
  /** @param kind what most of the lines are. */
  file(kind: "events" | "flagkeep" | "posthog", lines: number): Buffer {
    const written = Array.from({ length: lines }, () => this.line(this.isStrange(0.2) ? "events" : kind));
    const mark = this.isStrange(0.1) ? "\ufeff" : "";
    const end = this.isStrange() ? "" : this.ending();
    return Buffer.concat(
      [Buffer.from(mark), ...written.flatMap((line) => [line, this.ending()]).slice(0, -1), end].map((part) =>
        Buffer.from(part),
      ),
    );
  }

  private ending(): Buffer {
    return Buffer.from(
      this.isStrange(0.1) ? this.pick(["\n\n", " \n", "\t\r\n", "\r\n", "\n \n", "\u00a0\n"]) : "\n",
    );
  }

  private line(kind: "events" | "flagkeep" | "posthog"): Buffer {
    if (this.isStrange(0.02)) return Buffer.from(this.pick([this.value(2), "{}", "[]", "{", '"a"']));
    if (this.isStrange(0.002)) return Buffer.from(this.pick(["\ufdd0", '{"a":"\ufdd1"}']));
    const some = this.eventMembers().filter(([name]) => this.isStrange() || !beside.has(name));
    const own = some.filter(([name]) => name !== "uuid");
    for (const [name, value] of needed)
      if (!this.isStrange() && !own.some(([one]) => one === name)) own.push([name, value]);
    const members = [...own, ...this.uuid(kind), ...this.columns(kind)];
    const line = Buffer.from(this.spaced(this.object(this.shuffled(members))));
    const corrupt = this.corrupted(Buffer.from(line));
    // It would spoil the lines around it.
    return isUtf8(corrupt) || this.isStrange(0.1) ? corrupt : line;
  }

  /** Nearly all are different. */
  private uuid(kind: string): WrittenMembers {
    const uuid = `"01a1fb87-8ea9-71da-a728-${String(Math.floor(this.random() * 1e6)).padStart(12, "0")}"`;
    const strange = ['"x"', "null", '""', uuid.toUpperCase(), uuid.replaceAll("-", ""), "7"];
    const name = kind === "posthog" && this.random() < 0.3 ? "id" : "uuid";
    return this.maybe(this.isStrange() ? 0.8 : 1, name, () => this.oneOf([uuid], strange));
  }

  private columns(kind: string): WrittenMembers {
    const chain = () =>
      this.oneOf(['""', '"a.button:text=\\"Go\\""', "null"], ['"\\u00e9"', "1", '"\\ud800"', "[]"]);
    const often = () => (this.isStrange() ? 0.7 : 1);
    const value = () => this.value(2);
    const more = this.maybe(
      this.isStrange(0.3) ? 1 : 0,
      this.pick(["more", "plan", "properties.a", "__proto__", "$insert_id"]),
      value,
    );
    if (kind === "events") return more;
    const all = kind === "flagkeep" ? ownColumns : posthogColumns;
    return [
      ...more,
      ...this.maybe(often(), "elements_chain", chain),
      ...all.flatMap((name) => this.maybe(often(), name, value)),
      ...(kind === "posthog" && this.isStrange(0.5)
        ? apiColumns.flatMap((name) => this.maybe(0.9, name, value))
        : []),
    ];
  }
}

const needed = [
  ["distinct_id", '"d"'],
  ["timestamp", '"2026-11-20T11:12:13.456Z"'],
  ["properties", '{"a":1}'],
] as const;
/** Members that make an event unusual in every file. */
const beside = new Set([
  "offset",
  "$distinct_id",
  "$set",
  "$set_once",
  "token",
  "api_key",
  "$token",
  "batch",
  "sent_at",
]);
const ownColumns = ["received_at", "historical", "seq", "person_id"];
const posthogColumns = [
  "team_id",
  "person_id",
  "created_at",
  "person_properties",
  "elements_hash",
  "ip",
  "set",
];
const apiColumns = ["seq", "historical", "elements", "person"];
