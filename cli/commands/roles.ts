import { roleOperations } from "../../src/operations/roles.ts";
import { operationGroup } from "../operations/command.ts";

export const roles = operationGroup(
  "roles",
  "Manage roles, which grant flag editing where members can only view.",
  ["roles create Editors", "roles add-member Editors ann@example.com"],
  roleOperations,
);
