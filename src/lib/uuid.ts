/** Parses UUIDs from clients, in any letter case. Source: contract, ingestion 7.3. */

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
