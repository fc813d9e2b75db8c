/** Stores spikes and event rates: the detector's state across restarts, and the list for the API. */

import { desc, eq, isNull, lt } from "drizzle-orm";
import type { PersonsDb } from "./open.ts";
import { eventRate, spike } from "./schema.ts";
import { newSharedId } from "./shared-ids.ts";
import {
  Contributors,
  type Spike,
  SpikeDetector,
  type SpikeOptions,
  type SpikeSignal,
  type WatchedSpike,
} from "./spike-detector.ts";

/** Contributors that are stored and shown. */
const contributorsShown = 10;

/** Retention of spikes in days. */
export const spikeRetentionDays = 400;

/** Creates a detector with the stored state. @param includes the projects that it is for; default: all */
export function restoreDetector(
  db: PersonsDb,
  options: SpikeOptions,
  includes: (projectId: number) => boolean = () => true,
): SpikeDetector {
  const isIncluded = ({ projectId }: { projectId: number }) => includes(projectId);
  const rates = db.select().from(eventRate).all().filter(isIncluded);
  const open = db.select().from(spike).where(isNull(spike.endedMicros)).all().filter(isIncluded);
  return new SpikeDetector(options, {
    rates: rates.map(({ projectId, firstMinute, minutes }) => ({
      projectId,
      firstMinute,
      minutes: minutes.map(([minute, count, inSpike]) => ({ minute, count, isInSpike: inSpike === 1 })),
    })),
    openSpikes: open.map(({ events, distinctIds, ...row }) => ({
      ...row,
      contributors: Contributors.restored(events, distinctIds),
      isDirty: false,
    })),
  });
}

/**
 * Writes the detector's changes, in the caller's transaction.
 * @param idStep see `ProjectShare`
 * @returns the spikes that started or ended since the last call
 */
export function saveDetector(db: PersonsDb, detector: SpikeDetector, idStep?: number): SpikeSignal[] {
  const { rates, spikes } = detector.takeChanges();
  for (const { projectId, firstMinute, minutes } of rates) {
    const counts = minutes.map(({ minute, count, isInSpike }): [number, number, 0 | 1] => [
      minute,
      count,
      isInSpike ? 1 : 0,
    ]);
    db.insert(eventRate)
      .values({ projectId, firstMinute, minutes: counts })
      .onConflictDoUpdate({ target: eventRate.projectId, set: { firstMinute, minutes: counts } })
      .run();
  }
  return spikes.flatMap((watched) => saveSpike(db, watched, idStep));
}

function saveSpike(db: PersonsDb, watched: WatchedSpike, idStep: number | undefined): SpikeSignal[] {
  const { projectId, startedMicros, endedMicros, lastAboveMicros, peakPerMinute, baselinePerMinute } =
    watched;
  const events = watched.contributors.events.top(contributorsShown);
  const distinctIds = watched.contributors.distinctIds.top(contributorsShown);
  const changing = { endedMicros, lastAboveMicros, peakPerMinute, events, distinctIds };
  const isNew = watched.id === undefined;
  if (watched.id === undefined) {
    const shared = idStep === undefined ? {} : { id: newSharedId(db, "spike", { projectId, idStep }) };
    const values = { ...shared, projectId, startedMicros, baselinePerMinute, ...changing };
    watched.id = db.insert(spike).values(values).returning({ id: spike.id }).get().id;
  } else {
    db.update(spike).set(changing).where(eq(spike.id, watched.id)).run();
  }
  const shown = shownSpike({
    id: watched.id,
    projectId,
    startedMicros,
    baselinePerMinute,
    ...changing,
  });
  const signals: SpikeSignal[] = [];
  // While a backlog is loaded, a spike may start and end within one batch.
  if (isNew) signals.push({ kind: "began", ...shown, endedMicros: null });
  if (endedMicros !== null) signals.push({ kind: "ended", ...shown });
  return signals;
}

/** Spikes of a project, newest first. */
export function listSpikes(db: PersonsDb, projectId: number, { limit = 100, offset = 0 } = {}): Spike[] {
  return db
    .select()
    .from(spike)
    .where(eq(spike.projectId, projectId))
    .orderBy(desc(spike.startedMicros), desc(spike.id))
    .limit(limit)
    .offset(offset)
    .all()
    .map(shownSpike);
}

/** Open spikes of all projects, oldest first. */
export function openSpikes(db: PersonsDb): Spike[] {
  return db
    .select()
    .from(spike)
    .where(isNull(spike.endedMicros))
    .orderBy(spike.startedMicros, spike.id)
    .all()
    .map(shownSpike);
}

/** Deletes spikes that ended before `beforeMicros`. */
export function pruneSpikes(db: PersonsDb, beforeMicros: number): void {
  db.delete(spike).where(lt(spike.endedMicros, beforeMicros)).run();
}

function shownSpike(row: Omit<typeof spike.$inferSelect, "lastAboveMicros">): Spike {
  return {
    id: row.id,
    projectId: row.projectId,
    startedMicros: row.startedMicros,
    endedMicros: row.endedMicros,
    peakPerMinute: row.peakPerMinute,
    baselinePerMinute: row.baselinePerMinute,
    events: row.events.map(([event, count]) => ({ event, count })),
    distinctIds: row.distinctIds.map(([distinctId, count]) => ({ distinctId, count })),
  };
}
