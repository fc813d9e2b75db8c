/**
 * Each project's flags in memory, compiled for evaluation and serialized for SDKs; rebuilt when a flag, a cohort or a
 * group type changes, in any process.
 */

import { flagRevision } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { readCohorts } from "../../cohorts/cohorts.ts";
import { isCorruptSqlite } from "../../lib/errors.ts";
import { listGroupTypes } from "../../persons/groups.ts";
import type { PersonsDb } from "../../persons/open.ts";
import { localEvaluationBody, localEvaluationReply } from "../definitions/local-evaluation.ts";
import { compileFlagSet } from "../evaluate/flag-set.ts";
import type { FlagSet } from "../evaluate/model.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../rules/types.ts";
import { readFlags } from "./flag.ts";

/** Cached data of a project's flags. */
export interface ProjectFlags {
  /** Ready for `evaluate`. */
  readonly set: FlagSet;
  /** Changes whenever any of this does, and is stable across restarts. */
  readonly configuration: string;
  /** Not deleted, inactive ones included, by key. */
  definitions: readonly FlagDefinition[];
  cohorts: readonly CohortDefinition[];
  groupTypes: readonly GroupType[];
  /** Serialized definitions that SDKs poll, and their ETag. */
  definitionsFor(options: { sendCohorts: boolean }): { text: string; etag: string };
}

/** The current group types of a project, by index; the same list object while nothing changes. */
export type GroupTypeSource = (projectId: number) => readonly GroupType[];

/**
 * Returns the same object while nothing of the project changes, so that callers can cache derived data. The first
 * caller after a change waits until the project's flags are read, and for their compilation on first evaluation.
 */
export class FlagSets {
  private readonly byProject = new Map<
    number,
    { mark: string; groupTypes: readonly GroupType[]; flags: ProjectFlags }
  >();

  constructor(
    private readonly metadata: Metadata,
    private readonly groupTypes: GroupTypeSource,
  ) {}

  /** The current flags of a project. */
  get(projectId: number): ProjectFlags {
    const name = flagRevision(projectId);
    const { changes } = this.metadata;
    const mark = changes.mark(name);
    const groupTypes = this.groupTypes(projectId);
    const known = this.byProject.get(projectId);
    if (known && known.mark === mark && known.groupTypes === groupTypes) return known.flags;
    const configuration = `${changes.revision(name)}.${groupTypes.length}`;
    const flags = this.build(projectId, groupTypes, configuration);
    this.byProject.set(projectId, { mark, groupTypes, flags });
    return flags;
  }

  private build(projectId: number, groupTypes: readonly GroupType[], configuration: string): ProjectFlags {
    const definitions = readFlags(this.metadata.db, projectId);
    const cohorts = readCohorts(this.metadata.db, projectId);
    let set: FlagSet | undefined;
    const replies = new Map<boolean, { text: string; etag: string }>();
    return {
      // Compiled lazily: a server whose clients evaluate locally never needs it.
      get set() {
        set ??= compileFlagSet(definitions, cohorts, groupTypes);
        return set;
      },
      configuration,
      definitions,
      cohorts,
      groupTypes,
      definitionsFor: ({ sendCohorts }) => {
        const known = replies.get(sendCohorts);
        if (known) return known;
        const body = localEvaluationBody({ flags: definitions, cohorts, groupTypes, projectId, sendCohorts });
        const reply = localEvaluationReply(body);
        replies.set(sendCohorts, reply);
        return reply;
      },
    };
  }
}

/** Maximum delay until a new group type is noticed, in milliseconds. */
const checkEveryMs = 2;

/**
 * Reads group types only when the persons store has changed since the last time. If the store is corrupt, the last
 * known ones or none are used: flags without groups are still evaluated.
 *
 * @param onCorrupt receives the error of a corrupt store.
 */
export function groupTypesFrom(
  people: PersonsDb,
  onCorrupt: (error: unknown) => void = () => undefined,
): GroupTypeSource {
  const source = currentGroupTypes(people);
  const last = new Map<number, readonly GroupType[]>();
  return (projectId) => {
    try {
      const types = source(projectId);
      last.set(projectId, types);
      return types;
    } catch (error) {
      if (!isCorruptSqlite(error)) throw error;
      onCorrupt(error);
      return last.get(projectId) ?? unknownTypes;
    }
  };
}

/** The same list each time: flags are compiled again when it changes. */
const unknownTypes: readonly GroupType[] = [];

function currentGroupTypes(people: PersonsDb): GroupTypeSource {
  const dataVersion = people.$client.query<{ data_version: number }, []>("PRAGMA data_version");
  const known = new Map<number, { version: number; types: readonly GroupType[] }>();
  let version = 0;
  let checkedAt = Number.NEGATIVE_INFINITY;
  return (projectId) => {
    const now = performance.now();
    if (now - checkedAt >= checkEveryMs) {
      version = dataVersion.get()?.data_version ?? 0;
      checkedAt = now;
    }
    const before = known.get(projectId);
    if (before?.version === version) return before.types;
    const types = listGroupTypes(people, projectId).map(({ typeIndex, name }) => ({
      index: typeIndex,
      name,
    }));
    const isSame = before !== undefined && Bun.deepEquals(before.types, types);
    known.set(projectId, { version, types: isSame ? before.types : types });
    return isSame ? before.types : types;
  };
}
