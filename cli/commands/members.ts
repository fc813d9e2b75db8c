import { listAllMembers } from "../../src/operations/members.ts";
import { operationCommand } from "../operations/command.ts";

export const members = operationCommand(listAllMembers);
