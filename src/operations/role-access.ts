/** Which roles may edit a flag (requirement: role_access endpoints; contract: management-api 5.8). */

import { type Static, Type } from "@sinclair/typebox";
import { exampleRole, RoleBody, roleBody } from "../accounts/api/role-schemas.ts";
import { userFinder } from "../accounts/users.ts";
import { flagAnswers } from "../flags/api/feature-flags.ts";
import { FlagBody } from "../flags/api/flag-schemas.ts";
import { exampleFlag, type Flag } from "../flags/fields.ts";
import { findFlag } from "../flags/store/flag.ts";
import { mayEditRoles } from "../flags/store/flag-permissions.ts";
import {
  addRoleAccess,
  findRoleAccess,
  listRoleAccess,
  type RoleAccess,
  removeRoleAccess,
} from "../flags/store/role-access.ts";
import { notFound } from "../http/http-error.ts";
import { dateTime, int, named, object, pageOf, uuid } from "../http/schemas.ts";
import { PermissionDeniedError } from "../lib/errors.ts";
import { toApiTime } from "../lib/time.ts";
import { type FlagContext as Context, getFlagActor } from "./flag-actor.ts";
import { flagArgument } from "./flag-argument.ts";
import { getAuthor, listOperation, operation } from "./operation.ts";
import { roleByName } from "./roles.ts";

const tag = "Role access";
const path = "/feature_flags/:feature_flag_id/role_access";
const ofFlag = { feature_flag_id: int() };

const RoleAccessBody = named(
  "FeatureFlagRoleAccess",
  object({
    id: int(),
    feature_flag: FlagBody,
    role: RoleBody,
    role_id: uuid(),
    added_at: dateTime(),
    updated_at: dateTime(),
  }),
);

const example = {
  id: 5,
  feature_flag: exampleFlag,
  role: exampleRole,
  role_id: exampleRole.id,
  added_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-02T08:15:30.120000Z",
};

type AccessRecord = Static<typeof RoleAccessBody>;

const listRolesOfFlag = listOperation({
  id: "role_access.list",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List the roles with access to a flag",
  description: "Only relevant if the organization's default flag access is view.",
  http: { method: "GET", path, answer: "One page of records." },
  cli: {
    name: "flags roles",
    examples: ["flags roles new-checkout"],
    arguments: [flagArgument("feature_flag_id")],
    table: {
      headings: ["id", "role", "since"],
      row: ({ id, role, added_at: since }: AccessRecord) => [String(id), role.name, since],
    },
  },
  input: object(ofFlag),
  output: pageOf("FeatureFlagRoleAccessPage", RoleAccessBody),
  example,
  run: (context: Context, { feature_flag_id: flagId, limit, offset }) => {
    const flag = parentFlag(context, flagId);
    const { records, count } = listRoleAccess(context.stores.metadata.db, flag.id, { limit, offset });
    return { count, results: getBodies(context, flag, records) };
  },
});

const addRoleToFlag = operation({
  id: "role_access.create",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Grant a role access to a flag",
  http: { method: "POST", path, status: 201, answer: "The new record." },
  cli: {
    name: "flags add-role",
    description: "Let the members of a role edit a flag.",
    examples: ["flags add-role new-checkout Release"],
    arguments: [
      flagArgument("feature_flag_id"),
      { name: "role", description: "role name", member: "role_id", lookup: roleByName },
    ],
    done: ({ feature_flag: flag, role }: AccessRecord) => `Role ${role.name} may edit flag ${flag.key}.`,
  },
  input: object({ ...ofFlag, role_id: uuid({ writeOnly: true }) }),
  inputExample: { role_id: exampleRole.id },
  output: RoleAccessBody,
  example,
  run: (context: Context, { feature_flag_id: flagId, role_id: roleId }) => {
    const { stores, project, actor, now } = context;
    const flag = editableParent(context, flagId);
    const target = { flag, organizationId: project.organizationId, roleId, by: getAuthor(actor) };
    return getBodies(context, flag, [addRoleAccess(stores.metadata, target, now)])[0]!;
  },
});

const getRoleOfFlag = operation({
  id: "role_access.get",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Get a role access record",
  http: { method: "GET", path: `${path}/:id`, answer: "The record." },
  input: object({ ...ofFlag, id: int() }),
  output: RoleAccessBody,
  example,
  run: (context: Context, { feature_flag_id: flagId, id }) => {
    const flag = parentFlag(context, flagId);
    const record = findRoleAccess(context.stores.metadata.db, flag.id, id);
    if (!record) throw notFound();
    return getBodies(context, flag, [record])[0]!;
  },
});

const removeRoleFromFlag = operation({
  id: "role_access.delete",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Revoke a role's access to a flag",
  http: { method: "DELETE", path: `${path}/:id` },
  cli: {
    name: "flags remove-role",
    description: "Revoke a role's access to a flag.",
    examples: ["flags remove-role new-checkout Release"],
    arguments: [
      flagArgument("feature_flag_id"),
      {
        name: "role",
        description: "role name",
        member: "id",
        lookup: {
          in: () => listRolesOfFlag,
          input: ({ key }) => ({ feature_flag_id: (key as Flag).id }),
          matches: ({ role }: AccessRecord, name) => role.name.toLowerCase() === name.trim().toLowerCase(),
          value: ({ id }: AccessRecord) => id,
          missing: (name, { key }: { key: Flag }) =>
            `Role ${name} has no record of access to flag ${key.key}.`,
        },
      },
    ],
    result: {
      schema: object({ ...RoleAccessBody.properties, deleted: Type.Literal(true) }),
      build: ({ found }: { found: { role: AccessRecord } }) => ({ ...found.role, deleted: true }),
    },
    done: ({ feature_flag: flag, role }: AccessRecord) =>
      `Access of role ${role.name} to flag ${flag.key} is revoked.`,
  },
  input: object({ ...ofFlag, id: int() }),
  run: (context: Context, { feature_flag_id: flagId, id }) => {
    const { stores, actor, now } = context;
    const flag = editableParent(context, flagId);
    removeRoleAccess(stores.metadata, { flag, id, by: getAuthor(actor) }, now);
  },
});

function getBodies(context: Context, flag: Flag, records: readonly RoleAccess[]): AccessRecord[] {
  const { stores } = context;
  const users = userFinder(stores.metadata.db);
  const flagBody = flagAnswers(stores, getFlagActor(context)).one(flag);
  return records.map((record) => ({
    id: record.id,
    feature_flag: flagBody,
    role: roleBody(record.role, users(record.role.createdById)),
    role_id: record.role.id,
    added_at: toApiTime(record.addedAt),
    updated_at: toApiTime(record.updatedAt),
  }));
}

/** @throws {HttpError} 404 @throws {PermissionDeniedError} */
function editableParent(context: Context, id: number): Flag {
  const flag = parentFlag(context, id);
  const { permissions } = flagAnswers(context.stores, getFlagActor(context));
  if (mayEditRoles(permissions, flag)) return flag;
  throw new PermissionDeniedError("You can't edit roles for this feature flag.");
}

/** @throws {HttpError} 404 */
function parentFlag({ stores, project }: Context, id: number): Flag {
  const flag = findFlag(stores.metadata.db, project.id, id);
  if (!flag) throw notFound("Feature flag not found.");
  return flag;
}

/** In the order of the documentation. */
export const roleAccessOperations = [listRolesOfFlag, addRoleToFlag, getRoleOfFlag, removeRoleFromFlag];
