/** Members: the commands of their operations; without a subcommand, the list. */

import { listAllMembers, memberOperations } from "../../src/operations/members.ts";
import { operationCommand, operationGroup } from "../operations/command.ts";

export const members = operationGroup(
  "members",
  "Manage the members of the organization.",
  ["members list", "members add ann@example.com --level admin"],
  memberOperations.filter((of) => of !== listAllMembers),
).addCommand(operationCommand(listAllMembers), { isDefault: true });
