import { earlyAccessOperations, setStage } from "../../src/operations/early-access.ts";
import { operationGroup } from "../operations/command.ts";
import { FlagStores } from "../operations/flag-stores.ts";

export const features = operationGroup(
  "features",
  "Manage early access features, which persons turn on for themselves.",
  ["features list", "features stage new-editor beta"],
  [...earlyAccessOperations, setStage],
  (metadata, options) => new FlagStores(metadata, options),
);
