import { experimentOperations } from "../../src/operations/experiments.ts";
import { operationGroup } from "../operations/command.ts";
import { FlagStores } from "../operations/flag-stores.ts";

export const experiments = operationGroup(
  "experiments",
  "Manage experiments and show their results.",
  ["experiments list", "experiments launch 7"],
  experimentOperations,
  (metadata, options) => new FlagStores(metadata, options),
);
