/**
 * Evaluates the flags of one request: selects them, reads stored data about the subject, evaluates.
 *
 * Responds whatever happens to the stores: flags that depend on unreadable data are marked as failed, so that clients
 * keep the values they have. Source: contract, flag-evaluation 3.4, 5 and 10.
 */

import type { MaybePromise } from "../../lib/concurrency.ts";
import { ResultCache } from "../evaluate/caches.ts";
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
import type { ContextReader, EvaluationContext, StoredContext } from "./stored-context.ts";

export interface FlagEvaluationRequest extends EvaluationContext {
  /** IANA name. */
  timezone: string;
  deviceId?: string;
  selection: FlagSelection;
  /** The content of the request that evaluation reads, as text, if results may be cached by it. */
  requestKey?: string;
}

export interface FlagEvaluationDeps {
  subjects: ContextReader;
  overrides: OverrideWriter;
  /** Called when a store could not be read. */
  onError: (error: unknown) => void;
}

export class FlagEvaluation {
  private readonly answers = new ResultCache<Evaluation>();

  constructor(private readonly deps: FlagEvaluationDeps) {}

  /** The values of the selected flags; synchronous if the stored data is. Never throws because of a store. */
  run(set: FlagSet, request: FlagEvaluationRequest): MaybePromise<Evaluation> {
    let stored: MaybePromise<StoredContext>;
    try {
      stored = this.deps.subjects.read(set, request);
    } catch (error) {
      return this.withoutStores(set, request, error);
    }
    if (!(stored instanceof Promise)) return this.evaluate(set, request, stored);
    return stored.then(
      (found) => this.evaluate(set, request, found),
      (error) => this.withoutStores(set, request, error),
    );
  }

  private withoutStores(set: FlagSet, request: FlagEvaluationRequest, error: unknown): Evaluation {
    this.deps.onError(error);
    const overrides = { hashKeyOverridesFailed: set.needs.continuity };
    return withoutGuesses(set, evaluate(set, { ...facts(request, undefined), ...overrides }));
  }

  private evaluate(set: FlagSet, request: FlagEvaluationRequest, stored: StoredContext): Evaluation {
    const overrides = this.getOverrides(set, request, stored);
    const { requestKey } = request;
    if (requestKey === undefined || overrides.hashKeyOverrides || overrides.hashKeyOverridesFailed) {
      return evaluate(set, { ...facts(request, stored), ...overrides });
    }
    const properties = stored.person?.storedProperties;
    const before = this.answers.find(set, requestKey, properties);
    if (before !== undefined && set.isRepeatable) return before;
    const evaluation = evaluate(set, facts(request, stored), before);
    if (before === undefined) this.answers.keep(set, requestKey, properties, evaluation);
    return evaluation;
  }

  private getOverrides(
    set: FlagSet,
    { projectId, distinctId, anonDistinctId, now }: FlagEvaluationRequest,
    stored: StoredContext,
  ): Pick<EvaluationRequest, "hashKeyOverrides" | "hashKeyOverridesFailed"> {
    const { needs } = set;
    const { overrides } = this.deps;
    // Stored overrides come first, then queued ones as if they were stored already.
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

function facts(request: FlagEvaluationRequest, stored: StoredContext | undefined): EvaluationRequest {
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

/** The results with every flag marked as failed that depends on unreadable data. */
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
