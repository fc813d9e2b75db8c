/** Holdouts of experiments (contract: experiments 2.10). */

import { getCreatorId } from "../accounts/activity.ts";
import { userFinder } from "../accounts/users.ts";
import { exampleHoldout, HoldoutBody, holdoutBody } from "../experiments/api/schemas.ts";
import { changeFlag, holdoutFilters } from "../experiments/flag-changes.ts";
import {
  deleteHoldout,
  experimentsOfHoldout,
  findHoldout,
  type Holdout,
  insertHoldout,
  listHoldouts,
  writeHoldout,
} from "../experiments/store.ts";
import { int, list, nullable, object, optional, pageOf, record, string } from "../http/schemas.ts";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import {
  type ExperimentContext as Context,
  getExperimentActor,
  experimentTag as tag,
} from "./experiment-list.ts";
import { getAuthor, listOperation, operation, slicePage } from "./operation.ts";

const Texts = { description: optional(nullable(string({ blank: true, max: 3_000 }))) };
const users = ({ stores }: Context) => userFinder(stores.metadata.db);

const HoldoutFilters = list(record(), {
  minItems: 1,
  maxItems: 1,
  description:
    'One set: `{"properties": [], "rollout_percentage": 5}`; the percentage is excluded from experiments.',
});

function holdoutIn({ stores, project }: Context, id: number): Holdout {
  const found = findHoldout(stores.metadata.db, project.id, id);
  if (found === undefined) throw new NotFoundError();
  return found;
}

/** @throws {InvalidFieldError} */
export function holdoutSet([sent]: readonly JsonObject[], id: number): JsonObject[] {
  const percentage = sent?.rollout_percentage;
  if (typeof percentage !== "number" || percentage < 0 || percentage > 100)
    throw new InvalidFieldError(
      "filters",
      "invalid_input",
      "`rollout_percentage` must be between 0 and 100.",
    );
  return [{ properties: [], ...sent, rollout_percentage: percentage, variant: `holdout-${id}` }];
}

/** Writes the holdout into the flags of its experiments. @param holdoutId null: removes it */
function rewriteFlags(context: Context, holdout: Holdout, holdoutId: number | null): void {
  const { stores } = context;
  stores.metadata.change((t) => {
    for (const experiment of experimentsOfHoldout(t, holdout.id))
      changeFlag(stores, getExperimentActor(context), experiment, holdoutFilters(t, experiment, holdoutId));
  });
}

const listAllHoldouts = listOperation({
  id: "experiments.holdouts.list",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "List holdouts",
  http: { method: "GET", path: "/experiment_holdouts", answer: "One page of holdouts." },
  input: object({}),
  output: pageOf("ExperimentHoldoutPage", HoldoutBody),
  example: exampleHoldout,
  run: (context: Context, { limit, offset }) => {
    const all = listHoldouts(context.stores.metadata.db, context.project.id);
    return slicePage(all, { limit, offset }, (holdout) => holdoutBody(holdout, users(context)));
  },
});

export const createHoldout = operation({
  id: "experiments.holdouts.create",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Create a holdout",
  description: "Persons in it see no variant of the experiments that use it.",
  http: { method: "POST", path: "/experiment_holdouts", status: 201, answer: "The new holdout." },
  input: object({ name: string({ max: 400 }), ...Texts, filters: HoldoutFilters }),
  inputExample: { name: exampleHoldout.name, filters: [{ properties: [], rollout_percentage: 5 }] },
  output: HoldoutBody,
  example: exampleHoldout,
  run: (context: Context, { name, description, filters }) => {
    const { stores, project, now } = context;
    const created = stores.metadata.change((t) => {
      const values = {
        projectId: project.id,
        name: trimmedString("name", name, 400),
        description: description ?? "",
      };
      const { id } = insertHoldout(t, {
        ...values,
        filters: holdoutSet(filters, 0),
        createdById: getCreatorId(getAuthor(context.actor)),
        createdAt: now,
        updatedAt: now,
      });
      return writeHoldout(t, id, { filters: holdoutSet(filters, id) }, now);
    });
    return holdoutBody(created, users(context));
  },
});

const getHoldout = operation({
  id: "experiments.holdouts.get",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Get a holdout",
  http: { method: "GET", path: "/experiment_holdouts/:id", answer: "The holdout." },
  input: object({ id: int() }),
  output: HoldoutBody,
  example: exampleHoldout,
  run: (context: Context, { id }) => holdoutBody(holdoutIn(context, id), users(context)),
});

const updateHoldout = operation({
  id: "experiments.holdouts.update",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Update a holdout",
  description: "Also changes the flags of its draft and running experiments.",
  http: { method: "PATCH", path: "/experiment_holdouts/:id", answer: "The holdout." },
  input: object({
    id: int(),
    name: optional(string({ max: 400 })),
    ...Texts,
    filters: optional(HoldoutFilters),
  }),
  inputExample: { filters: [{ properties: [], rollout_percentage: 10 }] },
  output: HoldoutBody,
  example: exampleHoldout,
  run: (context: Context, { id, name, description, filters }) => {
    const { stores, now } = context;
    const before = holdoutIn(context, id);
    return stores.metadata.change((t) => {
      const after = writeHoldout(
        t,
        id,
        {
          ...(name === undefined ? {} : { name: trimmedString("name", name, 400) }),
          ...(description === undefined ? {} : { description: description ?? "" }),
          ...(filters === undefined ? {} : { filters: holdoutSet(filters, id) }),
        },
        now,
      );
      if (filters !== undefined) rewriteFlags(context, before, id);
      return holdoutBody(after, users(context));
    });
  },
});

const removeHoldout = operation({
  id: "experiments.holdouts.delete",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Delete a holdout",
  description: "Its draft and running experiments lose it.",
  http: { method: "DELETE", path: "/experiment_holdouts/:id" },
  input: object({ id: int() }),
  run: (context: Context, { id }) => {
    const { stores } = context;
    const holdout = holdoutIn(context, id);
    stores.metadata.change((t) => {
      rewriteFlags(context, holdout, null);
      deleteHoldout(t, id);
    });
  },
});

export const holdoutOperations = [listAllHoldouts, createHoldout, getHoldout, updateHoldout, removeHoldout];
