/** Feature flags: list, create, read, change; never a hard delete (contract: management-api 5.1 to 5.5). */

import { ActivityQuery, activityAnswers, activityPage, activityTag } from "../../accounts/api/activity.ts";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { findOrganization } from "../../accounts/organizations.ts";
import { methodNotAllowed, notFound } from "../../http/failure.ts";
import { parseFields } from "../../http/fields.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readId } from "../../http/path.ts";
import { Reply, type Route } from "../../http/route.ts";
import { ApiFailure, onePage, withPage } from "../../http/shapes.ts";
import { NotPermitted } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { exampleFlag, type Flag, flagFields } from "../fields.ts";
import { findFlag } from "../store/flag.ts";
import type { Edit } from "../store/flag-conflicts.ts";
import { listFlags } from "../store/flag-list.ts";
import { canEdit } from "../store/flag-permissions.ts";
import { createFlag, editFlag, type FlagWriting } from "../store/flag-writes.ts";
import { encryptionWarning, isEncryptionTurnedOn } from "../store/payload-history.ts";
import { assertNoApprovalNeeded } from "../store/protected-flags.ts";
import { FlagAnswers } from "./flag-answers.ts";
import { FlagQuery, readFlagQuery } from "./flag-query.ts";
import { FlagBody, FlagEditInput, FlagPage, NewFlagInput } from "./flag-shapes.ts";

const tagName = "Feature flags";
const flagScope = "FeatureFlag";
const flagMethods = ["GET", "PATCH", "HEAD", "OPTIONS"];
export const oneFlag = { 200: { description: "The flag.", schema: FlagBody, example: exampleFlag } };

export function featureFlagRoutes(deps: FlagWriting): Route[] {
  return [
    projectRoute("GET", "/feature_flags", "feature_flag:read", {
      summary: "List feature flags",
      description:
        "The stored definitions, newest first; deleted flags are left out. Nothing is evaluated: ask `/flags` for the value of a flag for one person.",
      tag: tagName,
      query: withPage(FlagQuery),
      answers: {
        200: onePage("One page of flags.", FlagPage, exampleFlag),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const filter = readFlagQuery(call.query);
        const { flags, count } = listFlags(deps.metadata.db, call.project.id, filter, page, call.now);
        return pageAnswer(call.url, page, count, flagAnswers(deps, call).many(flags));
      },
    }),
    projectRoute("POST", "/feature_flags", "feature_flag:write", {
      summary: "Create a feature flag",
      description:
        "Without `filters` the flag is off for everyone until it has a condition set; `rollout_percentage` creates one. A remote configuration is always on. A usage dashboard is created too.",
      tag: tagName,
      body: NewFlagInput,
      bodyExample: {
        key: "one-click-pay",
        name: "Lets people pay with one click",
        filters: { groups: [{ properties: [], rollout_percentage: 40 }] },
        tags: ["payments"],
      },
      answers: { 201: { description: "The new flag.", schema: FlagBody, example: exampleFlag } },
      handle: (call) => {
        const { key, _should_create_usage_dashboard: createsUsageDashboard = true } = call.body;
        const created = createFlag(deps, {
          projectId: call.project.id,
          by: call.user.id,
          fields: { ...flagFields(call.body), key },
          createsUsageDashboard,
          now: call.now,
        });
        return new Reply(201, flagAnswers(deps, call).one(created));
      },
    }),
    projectRoute("GET", "/feature_flags/activity", "activity_log:read", {
      summary: "List the activity of all flags",
      tag: activityTag,
      query: ActivityQuery,
      answers: activityAnswers,
      handle: (call) => activityPage(deps, call, { projectId: call.project.id, scope: flagScope }),
    }),
    projectRoute("GET", "/feature_flags/:id/activity", "activity_log:read", {
      summary: "List the activity of a flag",
      description: "Also of a deleted one.",
      tag: activityTag,
      query: ActivityQuery,
      answers: activityAnswers,
      handle: (call) => {
        const itemId = getFlag(deps, call).id;
        return activityPage(deps, call, { projectId: call.project.id, scope: flagScope, itemId });
      },
    }),
    projectRoute("GET", "/feature_flags/:id", "feature_flag:read", {
      summary: "Get a feature flag",
      description: "Also when it is deleted.",
      tag: tagName,
      answers: oneFlag,
      handle: (call) => flagAnswers(deps, call).one(getFlag(deps, call)),
    }),
    projectRoute("PATCH", "/feature_flags/:id", "feature_flag:write", {
      summary: "Update a feature flag",
      description:
        "`deleted: true` deletes the flag, `deleted: false` brings it back. The members of `filters` that are sent replace the stored ones, null clears one; `rollout_percentage` changes the rollout of the only condition set. Send `version` and `original_flag` to be refused with 409 when somebody else changed the same fields meanwhile; `note` tells the activity log why.",
      tag: tagName,
      body: FlagEditInput,
      takesRawBody: true,
      bodyExample: { active: false },
      answers: { ...oneFlag, 409: { description: "Somebody else changed it.", schema: ApiFailure } },
      handle: (call) => editByCaller(deps, call, call.body as JsonObject),
    }),
    projectRoute("DELETE", "/feature_flags/:id", "feature_flag:write", {
      summary: "Not allowed: delete flags with PATCH",
      description: 'Answers 405 whatever the id; nothing changes. Send `PATCH {"deleted": true}`.',
      tag: tagName,
      answers: { 405: { description: "Always.", schema: ApiFailure } },
      handle: () => {
        throw methodNotAllowed(
          "DELETE",
          flagMethods,
          'Hard delete of a feature flag is not allowed. Send a PATCH with {"deleted": true} instead.',
        );
      },
    }),
  ];
}

/** Writes flags for the caller. */
export function flagAnswers(deps: FlagWriting, call: ProjectCall<unknown>): FlagAnswers {
  const { metadata, payloads, groupTypes } = deps;
  const organization = findOrganization(metadata.db, call.project.organizationId)!;
  return new FlagAnswers(metadata.db, payloads, organization, call.user, call.now, groupTypes);
}

/** The flag that the path names. @throws {HttpFailure} 404 */
export function getFlag(
  deps: FlagWriting,
  call: { project: { id: number }; params: Record<string, string> },
): Flag {
  const flag = findFlag(deps.metadata.db, call.project.id, readId(call.params, "id"));
  if (!flag) throw notFound();
  return flag;
}

/** @throws {NotPermitted} the caller may only look at this flag (contract: management-api 3.7). */
export function checkMayEdit(answers: FlagAnswers, flag: Flag): void {
  if (canEdit(answers.permissions, flag)) return;
  throw new NotPermitted("You don't have edit permissions for this feature flag.");
}

/** Changes the flag that the path names, for the caller. @param sent as a PATCH sends it. */
export function editByCaller(deps: FlagWriting, call: ProjectCall, sent: JsonObject) {
  const answers = flagAnswers(deps, call);
  const of = { projectId: call.project.id, id: readId(call.params, "id"), by: call.user.id, now: call.now };
  let before: Flag;
  const after = editFlag(deps, of, (found) => {
    before = found;
    checkMayEdit(answers, found);
    const edit = editOf(sent, found);
    assertNoApprovalNeeded(deps, found, edit.fields);
    return edit;
  });
  return answers.one(after, isEncryptionTurnedOn(before!, after) ? [encryptionWarning] : []);
}

/** What a PATCH wants to write. @throws {InvalidField} */
export function editOf(sent: JsonObject, before: Flag): Edit {
  const input = parseFields(FlagEditInput, withoutOwnKey(sent, before), { partial: true });
  return {
    fields: flagFields(input),
    version: input.version ?? undefined,
    originalFlag: input.original_flag ?? undefined,
    note: input.note,
    sent,
  };
}

/** A deleted flag may have a key that no write could choose; echoing it is no change of the key. */
function withoutOwnKey(sent: JsonObject, { key: ownKey }: Flag): JsonObject {
  if (!isJsonObject(sent) || sent.key !== ownKey) return sent;
  const { key: _, ...others } = sent;
  return others;
}
