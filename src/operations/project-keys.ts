/** The public and the secret key of a project (contract: management-api 6.5, 7.2). */

import type { Static, TObject } from "@sinclair/typebox";
import type { Project } from "../accounts/project-directory.ts";
import {
  graceSecondsMax,
  revokePreviousKey,
  rotateProjectKey,
  rotateSecretKey,
} from "../accounts/projects.ts";
import type { Method } from "../http/route.ts";
import { int, object, optional } from "../http/schemas.ts";
import { getAuthor, type Operation, operation } from "./operation.ts";
import { assertAdminOf } from "./permissions.ts";
import { type InProject, ofProject, projectResponse } from "./projects.ts";

const Rotation = object({
  grace_seconds: optional(
    int({
      minimum: 0,
      maximum: graceSecondsMax,
      description: "Grace period during which the old key stays valid; default: 0.",
    }),
  ),
});

interface KeyChange<Input extends TObject> {
  id: string;
  path: string;
  summary: string;
  description: string;
  makesCredential?: true;
  input: Input;
  inputExample?: unknown;
  change: (context: InProject, input: Static<Input>) => Project;
}

/** Clients use both methods. */
function keyChange<Input extends TObject>({
  path,
  makesCredential,
  change,
  ...spec
}: KeyChange<Input>): Operation[] {
  return (["PATCH", "POST"] satisfies Method[]).map((method) =>
    operation({
      ...ofProject,
      ...spec,
      scope: "project:write",
      id: method === "POST" ? spec.id : `${spec.id}.patch`,
      http: { method, path, answer: "The project.", makesCredential: makesCredential ?? "shown" },
      run: (context: InProject, input) => {
        assertAdminOf(context, context.project.organizationId);
        return projectResponse(context, change(context, input));
      },
    }),
  );
}

const rotatePublic = keyChange({
  id: "projects.rotate_key",
  path: "/reset_token",
  summary: "Rotate the project key",
  description:
    "The old key becomes invalid immediately or after `grace_seconds`; the project shows how often it is still used. Admins and owners only.",
  input: Rotation,
  inputExample: { grace_seconds: 604_800 },
  change: ({ stores: { metadata }, project, actor, now }, { grace_seconds: graceSeconds }) =>
    rotateProjectKey(metadata, project.id, getAuthor(actor), { graceSeconds, now }),
});

const revokePublic = keyChange({
  id: "projects.revoke_old_key",
  path: "/delete_token_backup",
  summary: "Revoke the previous public key of a project",
  description: "The key becomes invalid immediately. Admins and owners only.",
  input: object({}),
  change: ({ stores: { metadata }, project, actor, now }) =>
    revokePreviousKey(metadata, project.id, "public", getAuthor(actor), now),
});

const rotateSecret = keyChange({
  id: "projects.rotate_secret",
  path: "/rotate_secret_token",
  summary: "Rotate the secret key",
  description:
    "Like `reset_token` for the public key. Admins and owners only; the key in the response is visible as in the project.",
  makesCredential: true,
  input: Rotation,
  inputExample: { grace_seconds: 86_400 },
  change: ({ stores: { metadata }, project, actor, now }, { grace_seconds: graceSeconds }) =>
    rotateSecretKey(metadata, project.id, getAuthor(actor), { graceSeconds, now }),
});

const revokeSecret = keyChange({
  id: "projects.revoke_old_secret",
  path: "/delete_secret_token_backup",
  summary: "Revoke the previous secret key of a project",
  description: "The key becomes invalid immediately. Admins and owners only.",
  input: object({}),
  change: ({ stores: { metadata }, project, actor, now }) =>
    revokePreviousKey(metadata, project.id, "secret", getAuthor(actor), now),
});

/** In the order of the documentation. */
export const projectKeyOperations = [rotatePublic, revokePublic, rotateSecret, revokeSecret].flat();

const viaPost = (operations: readonly Operation[]) => operations.find(({ http }) => http.method === "POST")!;

/** What commands call. */
export const rotatePublicKey = viaPost(rotatePublic);
export const revokePublicKey = viaPost(revokePublic);
export const rotateSecretKeyOf = viaPost(rotateSecret);
export const revokeSecretKey = viaPost(revokeSecret);
