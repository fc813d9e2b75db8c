/** Makes the manifest of a snapshot: versions, positions, counts, and the hash of every part. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readEventsVersion, withEventFile } from "../events/duckdb/database.ts";
import {
  firstOfFileName,
  type Lane,
  lanes,
  readableAfterCorruption,
  scanSegment,
} from "../journal/segment.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { loadedOutside } from "../people/outside-events.ts";
import { laneCursors } from "../people/reader.ts";
import { versions } from "../version.ts";
import { countEvents, countStores } from "./counts.ts";
import { SnapshotFailed } from "./errors.ts";
import { backupFormat, type Manifest, type Part } from "./manifest.ts";
import { schemaVersions } from "./schema-versions.ts";
import { readPart } from "./write-file.ts";

/** @param folder a snapshot. @param createdAt the moment before it was taken: what was acknowledged then is in it. */
export async function describeSnapshot(folder: string, createdAt: Date): Promise<Manifest> {
  const place = paths(folder);
  const { duckdb, sqlite, version } = versions();
  // DuckDB first: its library is in the data directory, and the copies have none.
  const eventsSchema = existsSync(place.events) ? await readEventsVersion(place.events) : null;
  const schemas = await schemaVersions(folder);
  const foundIn = (name: string) => schemas.find(({ store }) => store === name)!.found;
  const { applied, outside } = existsSync(place.people)
    ? cursorsIn(place.people)
    : { applied: noPositions(), outside: noPositions() };
  const [loaded, events] = eventsSchema
    ? await withEventFile(place.events, async (connection) => {
        const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
        const cursors = noPositions();
        for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
        return [cursors, await countEvents(connection)] as const;
      })
    : [outside, new Map<number, number>()];
  const segments = lanes.map((lane) => neededSegments(folder, lane, loaded[lane]));
  const stores = ["flagkeep.sqlite", "people.sqlite", "payload.key", "events.duckdb", "events.duckdb.wal"]
    .filter((name) => existsSync(join(folder, name)))
    .map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
  const parts: Part[] = [];
  for (const { name, bytes } of [...stores, ...segments.flatMap(({ parts }) => parts)]) {
    parts.push({ name, bytes, sha256: await hashOf(join(folder, name), bytes) });
  }
  return {
    format: backupFormat,
    created_at: createdAt.toISOString(),
    versions: { flagkeep: version, duckdb, sqlite },
    schemas: { metadata: foundIn("metadata"), people: foundIn("people"), events: eventsSchema },
    positions: segments.map(({ lane, last }) => ({
      lane,
      loaded_seq: loaded[lane],
      applied_seq: applied[lane],
      last_seq: Math.max(last, loaded[lane], applied[lane]),
    })),
    ...countStores(folder, events),
    parts,
  };
}

const noPositions = (): Record<Lane, number> => ({ realtime: 0, historical: 0 });

/** How far persons are applied, and how far events are loaded where those are kept outside of the data directory. */
function cursorsIn(path: string): Record<"applied" | "outside", Record<Lane, number>> {
  const people = openPeople(path, { readonly: true });
  try {
    return { applied: laneCursors(people), outside: loadedOutside(people) };
  } finally {
    people.$client.close();
  }
}

/** The segments with entries behind a position, each up to its last whole block: the newest may be growing. */
function neededSegments(folder: string, lane: Lane, after: number) {
  const names = readdirSync(join(folder, "journal", lane)).sort();
  const parts: { name: string; bytes: number }[] = [];
  let last = 0;
  names.forEach((name, index) => {
    const next = names[index + 1];
    if (next !== undefined && firstOfFileName(next)! <= after + 1) return;
    const bytes = readFileSync(join(folder, "journal", lane, name));
    const scan = scanSegment(bytes);
    if (readableAfterCorruption(bytes, scan, { lane, first: firstOfFileName(name)! }) !== undefined) {
      // Cut off there it would pass for whole, without what was acknowledged behind the damage.
      throw new SnapshotFailed(`The journal's segment ${lane}/${name} is damaged; see \`flagkeep doctor\`.`);
    }
    if (scan === undefined || scan.last < scan.first || scan.last <= after) return;
    parts.push({ name: `journal/${lane}/${name}`, bytes: scan.goodBytes });
    last = scan.last;
  });
  return { lane, parts, last };
}

async function hashOf(path: string, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  if (bytes > 0) for await (const chunk of readPart(path, bytes)) hash.update(chunk);
  return hash.digest("hex");
}
