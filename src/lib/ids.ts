/** Parses UUIDs from clients, in any letter case, and makes ordered ones. Source: contract, ingestion 7.3. */

const canonical = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const withoutHyphens = /^[0-9a-f]{32}$/;

/** Lower case with hyphens, from any version and either spelling; undefined when it is not a UUID. */
export function canonicalUuid(text: string): string | undefined {
  if (canonical.test(text)) return text;
  const lower = text.toLowerCase();
  if (canonical.test(lower)) return lower;
  if (!withoutHyphens.test(lower)) return undefined;
  return `${lower.slice(0, 8)}-${lower.slice(8, 12)}-${lower.slice(12, 16)}-${lower.slice(16, 20)}-${lower.slice(20)}`;
}

/** Count of the UUIDs of `orderedUuid`, of which 24 bits are used. */
let created = 0;

/**
 * A UUID of version 7 for a time. UUIDs of this process for the same millisecond sort by creation, even if UUIDs for
 * other times are created in between: the runtime's own counter restarts at random.
 */
export function orderedUuid(time: Date): string {
  const random = Bun.randomUUIDv7("hex", time);
  const count = (created++ % 2 ** 24).toString(16).padStart(6, "0");
  return `${random.slice(0, 15)}${count.slice(0, 3)}-8${count.slice(3)}${random.slice(23)}`;
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Eight random letters and digits, for example for insight URLs. Not secret. */
export function newShortId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(8)), (n) => letters[n % letters.length]).join("");
}
