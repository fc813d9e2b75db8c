/**
 * Each project's flags in memory, compiled for evaluation and written down for SDKs; made anew when a flag,
 * a cohort or a group type changes, whichever process changed it.
 */

import { flagRevision } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { readCohorts } from "../../cohorts/cohorts.ts";
import { listGroupTypes } from "../../people/groups.ts";
import type { PeopleDb } from "../../people/open.ts";
import { localEvaluationBody, localEvaluationReply } from "../definitions/local-evaluation.ts";
import { compileFlagSet } from "../evaluate/flag-set.ts";
import type { FlagSet } from "../evaluate/model.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../rules/types.ts";
import { readFlags } from "./flag.ts";

/** All that can be told about a project's flags without asking a store again. */
export interface ProjectFlags {
  /** Ready for `evaluate`. */
  readonly set: FlagSet;
  /** Changes whenever anything of this does, and stays over a restart. */
  readonly configuration: string;
  /** Not deleted, inactive ones included, by key. */
  definitions: readonly FlagDefinition[];
  cohorts: readonly CohortDefinition[];
  groupTypes: readonly GroupType[];
  /** What SDKs poll, as text, and its entity tag. */
  definitionsFor(options: { sendCohorts: boolean }): { text: string; etag: string };
}

/** The group types of a project now, by index; the same list object as long as nothing changed. */
export type GroupTypeSource = (projectId: number) => readonly GroupType[];

/**
 * Gives the same object for as long as nothing of the project has changed, so that others can keep what they made of it. Whoever
 * asks first after a change waits for the project's flags to be read, and for their compilation on evaluating them.
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

  /** The flags of a project as they are now. */
  of(projectId: number): ProjectFlags {
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
      // Compiled when somebody evaluates: a server whose clients evaluate themselves never needs it.
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

/** How long a new group type may stay unnoticed, in milliseconds. */
const checkEveryMs = 2;

/** Reads group types only when the people store changed since the last time. */
export function groupTypesFrom(people: PeopleDb): GroupTypeSource {
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
