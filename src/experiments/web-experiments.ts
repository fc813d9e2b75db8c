/** Web experiments: experiments whose variants change pages, without code of the site (contract: experiments 1.6). */

import { randomBytes } from "node:crypto";
import { and, asc, desc, eq, isNotNull } from "drizzle-orm";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../accounts/db.ts";
import { experiment, flag } from "../accounts/schema.ts";
import { keyFromName } from "../flags/rules/key.ts";
import { getVariants } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { NotFoundError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { toApiTime } from "../lib/time.ts";
import { createExperiment, updateExperiment } from "./actions.ts";
import type { ExperimentActor } from "./flag-changes.ts";
import { type Experiment, getExperiment, getStatus, writeExperiment } from "./store.ts";
import { control, readWebVariants } from "./web-variants.ts";

const randomKeyBytes = 5;
const keyNameLengthMax = 300;

const isWeb = (projectId: number) =>
  and(eq(experiment.projectId, projectId), eq(experiment.deleted, false), eq(experiment.type, "web"));

/** Newest first. */
export function listWebExperiments(db: Reading, projectId: number): Experiment[] {
  return db
    .select()
    .from(experiment)
    .where(isWeb(projectId))
    .orderBy(desc(experiment.createdAt), desc(experiment.id))
    .all();
}

/** @throws {NotFoundError} */
export function getWebExperiment(db: Reading, projectId: number, id: number): Experiment {
  const found = getExperiment(db, projectId, id);
  if (found.type !== "web") throw new NotFoundError();
  return found;
}

/** The API's form, which is also what visitors get; variants and their shares are those of the flag. */
export function webExperimentBody(db: Reading, experiment: Experiment) {
  const { key = "", filters = {} } = findFlag(db, experiment.projectId, experiment.flagId) ?? {};
  const shares = new Map(
    getVariants(filters).map((variant) => [String(variant.key), variant.rollout_percentage ?? 0]),
  );
  const changes = experiment.webVariants ?? {};
  const names = shares.size > 0 ? [...shares.keys()] : Object.keys(changes);
  const variants = names.map((name) => [
    name,
    { ...(isJsonObject(changes[name]) ? changes[name] : {}), rollout_percentage: shares.get(name) ?? 0 },
  ]);
  return {
    id: experiment.id,
    name: experiment.name,
    created_at: toApiTime(experiment.createdAt),
    feature_flag_key: key,
    variants: Object.fromEntries(variants) as JsonObject,
  };
}

/** Running web experiments for visitors, without those that change nothing yet. */
export function publicWebExperiments(db: Reading, projectId: number): JsonObject[] {
  return db
    .select({ row: experiment, active: flag.active })
    .from(experiment)
    .innerJoin(flag, eq(flag.id, experiment.flagId))
    .where(and(isWeb(projectId), isNotNull(experiment.webVariants)))
    .orderBy(asc(experiment.createdAt), asc(experiment.id))
    .all()
    .filter(({ row, active }) => getStatus(row, active) === "running")
    .map(({ row }) => {
      const body = webExperimentBody(db, row);
      const variants = Object.entries(body.variants).map(([key, variant]) => [
        key,
        key === control ? variant : withTextAsHtml(variant),
      ]);
      return { ...body, variants: Object.fromEntries(variants) as JsonObject };
    });
}

/**
 * posthog-js 1.449 applies `html` and `css`, but not `text`, and fails on the page without a list: a variant that was added
 * to the flag changes nothing.
 */
function withTextAsHtml(variant: Json): Json {
  if (!isJsonObject(variant)) return variant;
  const changes = Array.isArray(variant.transforms) ? variant.transforms : [];
  const transforms = changes.filter(isJsonObject).map((transform) => ({
    ...transform,
    ...(typeof transform.text === "string" && transform.html === undefined
      ? { html: Bun.escapeHTML(transform.text) }
      : {}),
  }));
  return { ...variant, transforms };
}

export interface WebExperimentInput {
  name?: string | undefined;
  variants?: JsonObject | undefined;
  start_date?: string | null | undefined;
  end_date?: string | null | undefined;
  archived?: boolean | undefined;
}

/** Creates a draft and its flag. @throws {InvalidFieldError} */
export function createWebExperiment(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  { name, variants: sent }: { name: string; variants: JsonObject },
): Experiment {
  const { variants, shares } = readWebVariants(sent);
  const suffix = randomBytes(randomKeyBytes).toString("hex");
  const key = `${keyFromName(name).slice(0, keyNameLengthMax)}-web-experiment-feature-${suffix}`;
  const filters = {
    groups: [{ properties: [], rollout_percentage: 100 }],
    multivariate: { variants: shares },
  };
  return deps.metadata.change((t) => {
    const created = createExperiment(deps, actor, {
      name,
      type: "web",
      feature_flag_key: key,
      feature_flag: { filters },
    });
    return write(t, created, variants, actor);
  });
}

/** Changes a web experiment; shares of a launched one change only through its flag. */
export function updateWebExperiment(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: number,
  { variants: sent, ...input }: WebExperimentInput,
): Experiment {
  return deps.metadata.change((t) => {
    getWebExperiment(t, actor.project.id, id);
    const read = sent === undefined ? undefined : readWebVariants(sent);
    const parameters = read === undefined ? {} : { parameters: { feature_flag_variants: read.shares } };
    const after = updateExperiment(deps, actor, id, { ...input, ...parameters });
    return write(t, after, read?.variants ?? after.webVariants, actor);
  });
}

/** Gives a duplicate the changes of its original. */
export const copyWebVariants = (
  t: MetadataTx,
  actor: ExperimentActor,
  { webVariants }: Experiment,
  copy: Experiment,
): Experiment => (webVariants === null ? copy : write(t, copy, webVariants, actor));

/** @throws {NotFoundError} */
export function deleteWebExperiment(deps: FlagWriteDeps, actor: ExperimentActor, id: number): void {
  deps.metadata.change((t) => {
    getWebExperiment(t, actor.project.id, id);
    updateExperiment(deps, actor, id, { deleted: true });
    bumpRevision(t, flagRevision(actor.project.id));
  });
}

function write(
  t: MetadataTx,
  experiment: Experiment,
  webVariants: JsonObject | null,
  { project, now }: ExperimentActor,
): Experiment {
  const after = writeExperiment(t, experiment, { webVariants }, now);
  bumpRevision(t, flagRevision(project.id));
  return after;
}
