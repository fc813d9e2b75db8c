import { annotationOperations } from "../../src/operations/annotations.ts";
import { operationGroup } from "../operations/command.ts";

export const annotations = operationGroup(
  "annotations",
  "Manage annotations, which charts show at their time.",
  ['annotations create "New checkout"', "annotations list"],
  annotationOperations,
);
