/** Which roles may edit a flag (requirement: role_access endpoints; contract: management-api 5.8). */

import type { Static } from "@sinclair/typebox";
import { exampleRole, RoleBody, roleBody } from "../../accounts/api/role-schemas.ts";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { userFinder } from "../../accounts/users.ts";
import { notFound } from "../../http/http-error.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readId } from "../../http/params.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { dateTime, int, named, object, PageQuery, pageExample, pageOf, uuid } from "../../http/schemas.ts";
import { toApiTime } from "../../lib/api-time.ts";
import { PermissionDeniedError } from "../../lib/errors.ts";
import { exampleFlag, type Flag } from "../fields.ts";
import { findFlag } from "../store/flag.ts";
import { mayEditRolesOf } from "../store/flag-permissions.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import {
  addRoleAccess,
  findRoleAccess,
  listRoleAccess,
  type RoleAccess,
  removeRoleAccess,
} from "../store/role-access.ts";
import { flagAnswers } from "./feature-flags.ts";
import type { FlagAnswers } from "./flag-answers.ts";
import { FlagBody } from "./flag-schemas.ts";

const tagName = "Role access";

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

const exampleAnswer = {
  id: 5,
  feature_flag: exampleFlag,
  role: exampleRole,
  role_id: exampleRole.id,
  added_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-02T08:15:30.120000Z",
};

export function roleAccessRoutes(deps: FlagWriteDeps): Route[] {
  const { metadata } = deps;
  const path = "/feature_flags/:feature_flag_id/role_access";
  return [
    projectRoute("GET", path, "feature_flag:read", {
      summary: "List the roles with access to a flag",
      description: "Only relevant if the organization's default flag access is view.",
      tag: tagName,
      query: PageQuery,
      answers: {
        200: pageExample(
          "One page of records.",
          pageOf("FeatureFlagRoleAccessPage", RoleAccessBody),
          exampleAnswer,
        ),
      },
      handle: (call) => {
        const flag = parentFlag(deps, call);
        const page = readPage(call.query);
        const { records, count } = listRoleAccess(metadata.db, flag.id, page);
        return pageAnswer(call.url, page, count, write(deps, flagAnswers(deps, call), flag, records));
      },
    }),
    projectRoute("POST", path, "feature_flag:write", {
      summary: "Grant a role access to a flag",
      tag: tagName,
      body: object({ role_id: uuid({ writeOnly: true }) }),
      bodyExample: { role_id: exampleRole.id },
      answers: { 201: { description: "The new record.", schema: RoleAccessBody, example: exampleAnswer } },
      handle: (call) => {
        const { flag, answers } = editableParent(deps, call);
        const of = {
          flag,
          organizationId: call.project.organizationId,
          roleId: call.body.role_id,
          by: call.user.id,
        };
        const record = addRoleAccess(metadata, of, call.now);
        return new RouteResponse(201, write(deps, answers, flag, [record])[0]);
      },
    }),
    projectRoute("GET", `${path}/:id`, "feature_flag:read", {
      summary: "Get a role access record",
      tag: tagName,
      answers: { 200: { description: "The record.", schema: RoleAccessBody, example: exampleAnswer } },
      handle: (call) => {
        const flag = parentFlag(deps, call);
        const record = findRoleAccess(metadata.db, flag.id, readId(call.params, "id"));
        if (!record) throw notFound();
        return write(deps, flagAnswers(deps, call), flag, [record])[0];
      },
    }),
    projectRoute("DELETE", `${path}/:id`, "feature_flag:write", {
      summary: "Revoke a role's access to a flag",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        const { flag } = editableParent(deps, call);
        removeRoleAccess(metadata, { flag, id: readId(call.params, "id"), by: call.user.id }, call.now);
        return new RouteResponse(204);
      },
    }),
  ];
}

function write(
  deps: FlagWriteDeps,
  answers: FlagAnswers,
  flag: Flag,
  records: readonly RoleAccess[],
): Static<typeof RoleAccessBody>[] {
  const users = userFinder(deps.metadata.db);
  const flagBody = answers.one(flag);
  return records.map((record) => ({
    id: record.id,
    feature_flag: flagBody,
    role: roleBody(record.role, users(record.role.createdById)),
    role_id: record.role.id,
    added_at: toApiTime(record.addedAt),
    updated_at: toApiTime(record.updatedAt),
  }));
}

function editableParent(deps: FlagWriteDeps, call: ProjectCall<unknown>) {
  const flag = parentFlag(deps, call);
  const answers = flagAnswers(deps, call);
  if (!mayEditRolesOf(answers.permissions, flag)) {
    throw new PermissionDeniedError("You can't edit roles for this feature flag.");
  }
  return { flag, answers };
}

function parentFlag(deps: FlagWriteDeps, call: ProjectCall<unknown>): Flag {
  const flag = findFlag(deps.metadata.db, call.project.id, readId(call.params, "feature_flag_id"));
  if (!flag) throw notFound("Feature flag not found.");
  return flag;
}
