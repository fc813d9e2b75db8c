/** Property columns for launched experiments: their results must not read the JSON of every event (contract: experiments 2.12). */

import type { Reading } from "../accounts/db.ts";
import { findFlag } from "../flags/store/flag.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import { getMetrics, getSources } from "./roled-metrics.ts";
import { type Experiment, launchedExperiments } from "./store.ts";

export const pinIntervalMs = 10_000;
const nameLengthMax = 200;

/** The properties of events that the results of launched experiments read; those of the flag first. */
function experimentProperties(db: Reading): string[] {
  const names = new Set<string>();
  const launched = launchedExperiments(db);
  if (launched.length === 0) return [];
  for (const experiment of launched) for (const name of exposureProperties(db, experiment)) names.add(name);
  for (const experiment of launched)
    for (const { metric } of getMetrics(db, experiment))
      for (const source of getSources(metric)) for (const name of getProperties(source)) names.add(name);
  return [...names].filter((name) => name.length <= nameLengthMax);
}

function exposureProperties(db: Reading, { projectId, flagId, exposureCriteria }: Experiment): string[] {
  const { exposure_config: exposure, activation_config: activation } = exposureCriteria;
  const key = findFlag(db, projectId, flagId)?.key;
  const own = isJsonObject(exposure)
    ? [...(key === undefined ? [] : [`$feature/${key}`]), ...getProperties(exposure)]
    : ["$feature_flag", "$feature_flag_response"];
  return [...own, ...(isJsonObject(activation) ? getProperties(activation) : [])];
}

function getProperties({ math, math_property: property, properties }: JsonObject): string[] {
  const filters = Array.isArray(properties) ? properties.filter(isJsonObject) : [];
  return [
    ...(math === "unique_session" ? ["$session_id"] : []),
    ...(typeof property === "string" && property !== "" ? [property] : []),
    ...filters.flatMap(({ key, type = "event" }) =>
      type === "event" && typeof key === "string" ? [key] : [],
    ),
  ];
}

/** Tells the engine which properties need a column, repeatedly: a restarted engine has forgotten them. */
export class ColumnPinner {
  private readonly tasks: PeriodicTasks;
  /** The engine knows of no properties. */
  private isIdle = true;

  constructor(
    private readonly deps: {
      db: Reading;
      pin: (names: string[]) => Promise<unknown>;
      onError: (error: unknown) => void;
    },
  ) {
    this.tasks = new PeriodicTasks(deps.onError);
  }

  /** Tells it at an interval until the signal is aborted. */
  start(intervalMs: number, stopping: AbortSignal): void {
    this.tasks.every(intervalMs, () => this.sendPins());
    stopping.addEventListener("abort", () => this.tasks.stop(), { once: true });
  }

  private async sendPins(): Promise<void> {
    const names = experimentProperties(this.deps.db);
    if (names.length === 0 && this.isIdle) return;
    await this.deps.pin(names);
    this.isIdle = names.length === 0;
  }
}
