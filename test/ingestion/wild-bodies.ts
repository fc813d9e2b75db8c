/** Bodies of capture requests that no one would send, from a seed. */

import { WildEvents } from "../support/wild-events.ts";
import { anyToken } from "./support.ts";

export class WildBodies extends WildEvents {
  body(): Buffer {
    const count = this.isStrange(0.02) ? 0 : 1 + Math.floor(this.random() * 4);
    const events = Array.from({ length: count }, () =>
      this.spaced(this.isStrange(0.02) ? this.value(2) : this.event()),
    );
    const list = `[${events.join(",")}]`;
    const kind = this.random();
    const around = () =>
      this.object(
        this.shuffled([
          ...this.maybe(0.9, "api_key", () =>
            this.oneOf([`"${anyToken}"`], ['""', '"other"', "null", '" x "', '"phx_1"']),
          ),
          ...this.maybe(0.05, "token", () => this.oneOf([`"${anyToken}"`], ['""', "null"])),
          ...this.maybe(0.02, "$token", () => `"${anyToken}"`),
          ...this.maybe(0.6, "sent_at", () =>
            this.oneOf(
              ['"2026-11-21T11:58:00.000Z"', '"2026-11-21T11:59:30.000Z"'],
              ['"x"', "null", "1795389272623", '"9999-01-01T00:00:00Z"', '"0001-01-01T00:00:00Z"'],
            ),
          ),
          ...this.maybe(0.2, "historical_migration", () =>
            this.oneOf(["true", "false"], ["null", '"true"', "1"]),
          ),
          ...this.maybe(0.05, this.pick(["event", "distinct_id", "properties", "other", "uuid"]), () =>
            this.value(2),
          ),
          ["batch", this.isStrange(0.02) ? this.value(2) : list],
          ...this.maybe(this.isStrange(0.1) ? 1 : 0, "batch", () => list),
          ...this.maybe(0.05, this.pick(["event", "timestamp", "properties", "$set", "offset"]), () =>
            this.value(2),
          ),
        ]),
      );
    const text = this.spaced(kind < 0.6 ? around() : kind < 0.8 ? list : (events[0] ?? ""));
    return this.corrupted(Buffer.from(`${this.isStrange(0.02) ? "\ufeff" : ""}${text}`));
  }
}
