/**
 * Caches what flag evaluation reads of persons in another process: a node of a cluster answers from memory, reads a person that
 * it does not know once, with others of the same event-loop tick, and never waits long for one. IDs without a person have
 * entries.
 */

import DataLoader from "dataloader";
import type { MaybePromise } from "../lib/concurrency.ts";
import type { Group } from "./groups.ts";
import {
  type GroupKey,
  type StoredId,
  type StoredSubject,
  type SubjectQuery,
  type SubjectReader,
  type SubjectSource,
  toSubject,
} from "./person-reader.ts";

/** No request waits longer for a person. */
const waitMsMax = 250;
/** Age at which an entry is read again, in case a change was missed. */
const entryMsMax = 30_000;
/** The same of groups, whose changes are not announced. */
const groupMsMax = 2_000;
/** The same of the answer that nothing has overrides. */
export const noOverridesMsMax = 500;
/** Reads in progress, of which some may wait for a connection. */
export const readsMax = 1_000;
/** Persons or groups per statement: each can have 0.5 MB. */
export const readsAtOnce = 100;
/** One statement for what the requests of one event-loop tick need; entries are cached here. */
const batchOptions = {
  cache: false,
  maxBatchSize: readsAtOnce,
  batchScheduleFn: (start: () => void) => void setImmediate(start),
};
/** Size of an entry without its strings. */
const entryBytes = 256;

/** A person or group is not cached and cannot be read in time. */
export class SubjectUnavailableError extends Error {
  constructor(reason: string) {
    super(`A person is not cached and cannot be read: ${reason}.`);
  }
}

type Value = StoredId | { group: Group | undefined };

interface Entry<Of extends Value = Value> {
  value: Of;
  bytes: number;
  /** When it is read again. */
  expiresAt: number;
  personUuid: string | undefined;
}

/** How much is cached, and how often it was of use. */
export interface CacheUse {
  entries: number;
  bytes: number;
  bytesMax: number;
  /** IDs and groups of requests that were cached, and that were not. */
  hits: number;
  misses: number;
}

interface Read<Of extends Value = Value> {
  entry: Promise<Entry<Of>>;
  /** Something changed since it started: its result may be older than the change and is not cached. */
  isOutdated: boolean;
}

export interface CachedSubjectsOptions {
  bytesMax: number;
  /** Whether reading would fail: what is cached is used at any age then. */
  isUnavailable: () => boolean;
  /** Milliseconds; replaced in tests. */
  now?: () => number;
}

export class CachedSubjects implements SubjectReader {
  /** Least recently used first. */
  private readonly entries = new Map<string, Entry>();
  /** The newest read of each key. */
  private readonly reading = new Map<string, Read>();
  /** Includes outdated reads that were repeated. */
  private readCount = 0;
  private readonly keysByPerson = new Map<string, Set<string>>();
  private bytes = 0;
  private hits = 0;
  private misses = 0;
  private hasOverrides = false;
  private checkingOverrides: Promise<boolean> | undefined;
  private overridesCheckedAt = Number.NEGATIVE_INFINITY;
  private readonly now: () => number;
  private readonly ids: DataLoader<{ projectId: number; distinctId: string; nowMicros: number }, StoredId>;
  private readonly groups: DataLoader<GroupKey & { projectId: number }, Group | undefined>;

  constructor(
    private readonly source: SubjectSource,
    private readonly options: CachedSubjectsOptions,
  ) {
    this.now = options.now ?? (() => performance.now());
    this.ids = new DataLoader((ids) => source.storedIds(ids, ids.at(-1)!.nowMicros), batchOptions);
    this.groups = new DataLoader((keys) => source.storedGroups(keys), batchOptions);
  }

  /** @throws {SubjectUnavailableError} also as a rejected promise */
  subject(query: SubjectQuery): MaybePromise<StoredSubject> {
    const ids = query.distinctIds.map((id) => this.idEntry(query, id));
    const groups = query.groups.map((group) => this.groupEntry(query, group));
    const isCached = <Item>(all: MaybePromise<Item>[]): all is Item[] =>
      all.every((value) => !(value instanceof Promise));
    const combine = (idValues: StoredId[], groupValues: { group: Group | undefined }[]) =>
      toSubject(
        query,
        idValues,
        groupValues.map(({ group }) => group),
      );
    if (isCached(ids) && isCached(groups)) return combine(ids, groups);
    return Promise.all([Promise.all(ids), Promise.all(groups)]).then(([idValues, groupValues]) =>
      combine(idValues, groupValues),
    );
  }

  /** @returns the last known value if it cannot be read in time */
  hasHashKeyOverrides(): MaybePromise<boolean> {
    const isKnown = this.hasOverrides || this.now() < this.overridesCheckedAt + noOverridesMsMax;
    if (isKnown || this.options.isUnavailable()) return this.hasOverrides;
    this.checkingOverrides ??= this.checkOverrides();
    return inTime(this.checkingOverrides).catch(() => this.hasOverrides);
  }

  private async checkOverrides(): Promise<boolean> {
    const startedAt = this.now();
    try {
      const found = await this.source.hasHashKeyOverrides();
      this.hasOverrides ||= found;
      this.overridesCheckedAt = startedAt;
      return this.hasOverrides;
    } finally {
      this.checkingOverrides = undefined;
    }
  }

  /** Forgets persons by their UUIDs. */
  evict(personUuids: Iterable<string>): void {
    // It is not known yet which person a read will return.
    for (const read of this.reading.values()) read.isOutdated = true;
    for (const uuid of personUuids) for (const key of this.keysByPerson.get(uuid) ?? []) this.remove(key);
  }

  /** Forgets all, because it is unknown what changed. */
  clear(): void {
    this.evict([]);
    for (const key of [...this.entries.keys()]) this.remove(key);
  }

  /** Forgets an ID whose overrides were stored. */
  overridesStored(projectId: number, distinctId: string): void {
    this.hasOverrides = true;
    this.evictId(projectId, distinctId);
  }

  /** Forgets an ID. */
  evictId(projectId: number, distinctId: string): void {
    const key = idKey(projectId, distinctId);
    const read = this.reading.get(key);
    if (read !== undefined) read.isOutdated = true;
    this.remove(key);
  }

  get use(): CacheUse {
    const { bytes, hits, misses } = this;
    return { entries: this.entries.size, bytes, bytesMax: this.options.bytesMax, hits, misses };
  }

  private idEntry({ projectId, nowMicros }: SubjectQuery, distinctId: string): MaybePromise<StoredId> {
    return this.value(idKey(projectId, distinctId), async () => {
      const value = await this.ids.load({ projectId, distinctId, nowMicros });
      const { person } = value;
      const characters = distinctId.length + (person?.storedProperties.length ?? 0);
      const expiresAt = this.now() + entryMsMax;
      return { value, bytes: getBytes(characters), expiresAt, personUuid: person?.uuid };
    });
  }

  private groupEntry(
    { projectId }: SubjectQuery,
    group: GroupKey,
  ): MaybePromise<{ group: Group | undefined }> {
    const key = `group ${projectId} ${group.typeIndex} ${group.key}`;
    return this.value(key, async () => {
      const value = { group: await this.groups.load({ projectId, ...group }) };
      const characters = group.key.length + JSON.stringify(value.group?.properties ?? {}).length;
      return {
        value,
        bytes: getBytes(characters),
        expiresAt: this.now() + groupMsMax,
        personUuid: undefined,
      };
    });
  }

  private value<Of extends Value>(key: string, read: () => Promise<Entry<Of>>): MaybePromise<Of> {
    const cached = this.entries.get(key) as Entry<Of> | undefined;
    const isUnavailable = this.options.isUnavailable();
    if (cached !== undefined) {
      this.entries.delete(key);
      this.entries.set(key, cached);
      if (isUnavailable || this.now() < cached.expiresAt) {
        this.hits += 1;
        return cached.value;
      }
    }
    this.misses += 1;
    if (isUnavailable) throw new SubjectUnavailableError("the store is unavailable");
    return this.waitFor(this.readOnce(key, read), cached);
  }

  /** One read at a time for each key, unless something changed since it started; it fills the cache even if no request waits any more. */
  private readOnce<Of extends Value>(key: string, read: () => Promise<Entry<Of>>): Promise<Entry<Of>> {
    const running = this.reading.get(key) as Read<Of> | undefined;
    if (running !== undefined && !running.isOutdated) return running.entry;
    if (this.readCount >= readsMax)
      return Promise.reject(new SubjectUnavailableError(`${readsMax} reads are in progress`));
    this.readCount += 1;
    const started: Read<Of> = {
      entry: read()
        .then((entry) => {
          if (!started.isOutdated) this.add(key, entry);
          return entry;
        })
        .finally(() => {
          this.readCount -= 1;
          if (this.reading.get(key) === started) this.reading.delete(key);
        }),
      isOutdated: false,
    };
    this.reading.set(key, started);
    return started.entry;
  }

  private async waitFor<Of extends Value>(
    reading: Promise<Entry<Of>>,
    cached: Entry<Of> | undefined,
  ): Promise<Of> {
    try {
      return (await inTime(reading)).value;
    } catch (error) {
      if (cached !== undefined) return cached.value;
      throw error;
    }
  }

  private add(key: string, entry: Entry): void {
    this.remove(key);
    this.entries.set(key, entry);
    this.bytes += entry.bytes;
    if (entry.personUuid !== undefined) {
      const keys = this.keysByPerson.get(entry.personUuid) ?? new Set();
      this.keysByPerson.set(entry.personUuid, keys.add(key));
    }
    for (const oldest of this.entries.keys()) {
      if (this.bytes <= this.options.bytesMax) break;
      this.remove(oldest);
    }
  }

  private remove(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.bytes -= entry.bytes;
    if (entry.personUuid === undefined) return;
    const keys = this.keysByPerson.get(entry.personUuid);
    keys?.delete(key);
    if (keys?.size === 0) this.keysByPerson.delete(entry.personUuid);
  }
}

/** @throws {SubjectUnavailableError} */
async function inTime<Result>(reading: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new SubjectUnavailableError(`no answer in ${waitMsMax} ms`)),
    waitMsMax,
  );
  try {
    return await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const getBytes = (characters: number) => entryBytes + 2 * characters;

const idKey = (projectId: number, distinctId: string) => `id ${projectId} ${distinctId}`;
