/** Ingestion warnings: exact counts per hour, type and subject, with the details of the first one. */

import { and, desc, eq, getTableColumns, inArray, lt } from "drizzle-orm";
import { toJsonString } from "../lib/json/canonical.ts";
import type { Warning } from "./identity/ingestion-warning.ts";
import type { PersonsDb } from "./open.ts";
import { ingestionWarning } from "./schema.ts";
import { newSharedId } from "./shared-ids.ts";

/** Maximum subjects per project, type and hour; the others share one row without a subject. */
export const warningSubjectsMax = 100;

/** Retention in days after the last occurrence. */
export const warningRetentionDays = 30;

/** Maximum characters of the details as JSON; longer ones are replaced by a note. */
const detailsLengthMax = 4_000;

const microsPerHour = 3_600_000_000;

/** A row of the list: type, count, and first and last time within the hour. */
export interface CountedWarning {
  id: number;
  projectId: number;
  type: string;
  /** Usually a distinct ID; empty for the rest above `warningSubjectsMax`. */
  subject: string;
  /** Details of the first one. */
  details: Record<string, unknown>;
  firstMicros: number;
  lastMicros: number;
  count: number;
}

interface HourlyCount extends Omit<CountedWarning, "id"> {
  hour: number;
}

/** Adds warnings to the counts, in the caller's transaction. @param idStep see `ProjectShare` */
export function recordWarnings(db: PersonsDb, warnings: readonly Warning[], idStep?: number): void {
  const add = db.$client.query(`
    INSERT INTO ingestion_warning (id, project_id, hour, type, subject, details, first_at, last_at, count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project_id, hour, type, subject) DO UPDATE SET count = count + excluded.count,
      first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)`);
  for (const tallies of byHourAndType(warnings)) {
    const known = new Set(getSubjects(db, tallies[0]!));
    for (const tally of tallies) {
      const hasCapacity = known.has(tally.subject) || known.size < warningSubjectsMax;
      const subject = hasCapacity ? tally.subject : "";
      known.add(subject);
      const { projectId, hour, type, firstMicros, lastMicros, count } = tally;
      const id = idStep === undefined ? null : newSharedId(db, "ingestion_warning", { projectId, idStep });
      add.run(
        id,
        projectId,
        hour,
        type,
        subject,
        formatDetails(tally.details),
        firstMicros,
        lastMicros,
        count,
      );
    }
  }
}

/** Warnings of a project, last seen first. */
export function listWarnings(
  db: PersonsDb,
  projectId: number,
  { types, limit = 100, offset = 0 }: { types?: readonly string[]; limit?: number; offset?: number } = {},
): CountedWarning[] {
  const { hour: _, ...columns } = getTableColumns(ingestionWarning);
  return db
    .select(columns)
    .from(ingestionWarning)
    .where(
      and(
        eq(ingestionWarning.projectId, projectId),
        types === undefined ? undefined : inArray(ingestionWarning.type, [...types]),
      ),
    )
    .orderBy(desc(ingestionWarning.lastMicros), desc(ingestionWarning.id))
    .limit(limit)
    .offset(offset)
    .all();
}

/** Count of each type since a time (rounded to the hour), per project. */
export function countWarningsSince(
  db: PersonsDb,
  sinceMicros: number,
): { projectId: number; type: string; count: number }[] {
  const query = db.$client.query<{ projectId: number; type: string; count: number }, [number]>(
    `SELECT project_id AS projectId, type, sum(count) AS count FROM ingestion_warning
     WHERE last_at >= ? GROUP BY project_id, type ORDER BY project_id, count DESC, type`,
  );
  return query.all(sinceMicros);
}

/** Deletes warnings last seen before `beforeMicros`. */
export function pruneWarnings(db: PersonsDb, beforeMicros: number): void {
  db.delete(ingestionWarning).where(lt(ingestionWarning.lastMicros, beforeMicros)).run();
}

/** Aggregates warnings; each list has those of one project, hour and type. */
function byHourAndType(warnings: readonly Warning[]): HourlyCount[][] {
  const groups = new Map<string, Map<string, HourlyCount>>();
  for (const { projectId, type, details, receivedMicros, count = 1 } of warnings) {
    const hour = Math.floor(receivedMicros / microsPerHour);
    const key = `${projectId}:${hour}:${type}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = new Map();
      groups.set(key, group);
    }
    const subject = typeof details.distinctId === "string" ? details.distinctId : "";
    const tally = group.get(subject);
    if (tally === undefined) {
      const times = { firstMicros: receivedMicros, lastMicros: receivedMicros };
      group.set(subject, { projectId, hour, type, subject, details, ...times, count });
    } else {
      tally.count += count;
      tally.firstMicros = Math.min(tally.firstMicros, receivedMicros);
      tally.lastMicros = Math.max(tally.lastMicros, receivedMicros);
    }
  }
  return [...groups.values()].map((group) => [...group.values()]);
}

function getSubjects(db: PersonsDb, { projectId, hour, type }: HourlyCount): string[] {
  const query = db.$client.query<{ subject: string }, [number, number, string]>(
    "SELECT subject FROM ingestion_warning WHERE project_id = ? AND hour = ? AND type = ?",
  );
  return query.all(projectId, hour, type).map(({ subject }) => subject);
}

function formatDetails(details: Record<string, unknown>): string {
  const text = toJsonString(details);
  return text.length <= detailsLengthMax ? text : '{"message":"The details were too long to store."}';
}
