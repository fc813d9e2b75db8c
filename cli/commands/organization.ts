import { organizationOperations } from "../../src/operations/organizations.ts";
import { operationGroup } from "../operations/command.ts";

export const organization = operationGroup(
  "organization",
  "Update organization settings.",
  ["organization set --flags-access view"],
  organizationOperations,
);
