/**
 * Computes the flags of one request: chooses them, reads what is stored about the subject, evaluates.
 *
 * Answers whatever happens to the stores: what cannot be known is marked as failed, so that clients keep the values
 * they have. Source: contract, flag-evaluation 3.4, 5 and 10.
 */

import { AnswerMemory } from "../evaluate/caches.ts";
import { Evaluation, evaluate } from "../evaluate/evaluate.ts";
import { planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
import type {
  CompiledFlag,
  EvaluationRequest,
  FlagResult,
  FlagSelection,
  FlagSet,
} from "../evaluate/model.ts";
import type { OverrideWriter } from "./override-writer.ts";
import type { StoredSubject, Subject, SubjectReader } from "./stored-subject.ts";

export interface ComputationRequest extends Subject {
  /** IANA name. */
  timezone: string;
  deviceId?: string;
  selection: FlagSelection;
  /** All of the request that evaluation looks at, as text, when answers may be remembered under it. */
  words?: string;
}

export interface ComputationDeps {
  subjects: SubjectReader;
  overrides: OverrideWriter;
  /** Told when a store could not be read. */
  onTrouble: (error: unknown) => void;
}

export class Computation {
  private readonly answers = new AnswerMemory<Evaluation>();

  constructor(private readonly deps: ComputationDeps) {}

  /** The values of the selected flags. Never throws because of a store. */
  run(set: FlagSet, request: ComputationRequest): Evaluation {
    let stored: StoredSubject | undefined;
    try {
      stored = this.deps.subjects.read(set, request);
    } catch (error) {
      this.deps.onTrouble(error);
    }
    const overrides = this.overridesOf(set, request, stored);
    if (stored === undefined) {
      return withoutGuesses(set, evaluate(set, { ...facts(request, stored), ...overrides }));
    }
    const { words } = request;
    if (words === undefined || overrides.hashKeyOverrides || overrides.hashKeyOverridesFailed) {
      return evaluate(set, { ...facts(request, stored), ...overrides });
    }
    const properties = stored.person?.storedProperties;
    const before = this.answers.find(set, words, properties);
    if (before !== undefined && set.isRepeatable) return before;
    const evaluation = evaluate(set, facts(request, stored), before);
    if (before === undefined) this.answers.keep(set, words, properties, evaluation);
    return evaluation;
  }

  private overridesOf(
    set: FlagSet,
    { projectId, distinctId, anonDistinctId, now }: ComputationRequest,
    stored: StoredSubject | undefined,
  ): Pick<EvaluationRequest, "hashKeyOverrides" | "hashKeyOverridesFailed"> {
    const { needs } = set;
    if (stored === undefined) return { hashKeyOverridesFailed: needs.continuity };
    const { overrides } = this.deps;
    // What is stored comes first, what is queued next, as if it were stored already.
    const known = stored.overridden.map((id) => {
      const queued = overrides.queuedFor(projectId, id.distinctId);
      return queued ? { ...id, overrides: new Map([...queued, ...id.overrides]) } : id;
    });
    const { toStore, effective } = planHashKeyOverrides(set, known, anonDistinctId);
    if (toStore.length > 0) {
      const isQueued = overrides.add({
        projectId,
        distinctIds: [distinctId, anonDistinctId!],
        flagKeys: needs.continuityKeys,
        hashKey: anonDistinctId!,
        requestedMicros: now * 1_000,
      });
      if (!isQueued) return { hashKeyOverridesFailed: true };
    }
    return effective.size === 0 ? {} : { hashKeyOverrides: effective };
  }
}

function facts(request: ComputationRequest, stored: StoredSubject | undefined): EvaluationRequest {
  return {
    distinctId: request.distinctId,
    deviceId: request.deviceId,
    anonDistinctId: request.anonDistinctId,
    groups: request.groups,
    person: stored?.person,
    personPropertyOverrides: request.personProperties,
    groupProperties: stored?.groupProperties,
    groupPropertyOverrides: request.groupProperties,
    now: request.now,
    timezone: request.timezone,
    selection: request.selection,
  };
}

/** The results with every flag marked as failed that looks at something that could not be read. */
function withoutGuesses(set: FlagSet, evaluation: Evaluation): Evaluation {
  const list = evaluation.list.map((result) =>
    looksAtStores(set.byKey.get(result.key)!) ? unknown(result) : result,
  );
  return new Evaluation(list, true);
}

function looksAtStores(flag: CompiledFlag): boolean {
  return (
    flag.enrollmentKey !== null ||
    flag.superCondition !== null ||
    flag.holdouts.some(({ filters }) => filters.length > 0) ||
    flag.conditions.some(({ filters }) => filters.length > 0)
  );
}

function unknown(result: FlagResult): FlagResult {
  return {
    ...result,
    enabled: false,
    variant: null,
    payload: null,
    failed: true,
    reason: {
      code: "database_error",
      conditionIndex: null,
      description: "Stored properties cannot be read",
    },
  };
}
