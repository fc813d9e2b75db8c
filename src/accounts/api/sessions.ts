/** Routes for signing in. Only the console may call them; keys may not. */

import type { Static } from "@sinclair/typebox";
import { authenticationFailed, notFound, permissionDenied } from "../../http/http-error.ts";
import { readUuid } from "../../http/params.ts";
import { type Call, type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  dateTime,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  string,
  uuid,
} from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import { isUnlimited } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { findOrganization } from "../organizations.ts";
import { getSession, setCookie } from "../sessions/cookie.ts";
import {
  type ClientInfo,
  confirmedUntil,
  endSession,
  endSessions,
  getEnd,
  listSessions,
  type Session,
} from "../sessions/sessions.ts";
import { findSetup } from "../sessions/setup-links.ts";
import { type Credentials, type NewSession, SignIn } from "../sessions/sign-in.ts";
import { consoleRoute, type SessionCall, sessionRoute } from "./routes.ts";

const tagName = "Sessions";
/** Longer passwords are always wrong; they are rejected with the same message. */
const passwordLengthMax = 1_024;

const SessionBody = named(
  "Session",
  object({
    id: uuid(),
    email: string({ description: "ID of the signed-in user." }),
    created_at: dateTime(),
    last_seen_at: dateTime({ description: "Precision: five minutes." }),
    expires_at: dateTime({
      description: "Seven days after the last use, at most thirty days after creation.",
    }),
    address: string({ blank: true, description: "Client that created the session." }),
    browser: string({ blank: true }),
    is_current: bool(),
    is_from_key: bool({
      description: "The session was created with a personal key, has its current scopes and ends with it.",
    }),
    scopes: list(string(), { description: "`*`: all permissions of the user." }),
    confirmed_until: nullable(dateTime(), {
      description: "Re-authentication is valid until this time; null: sensitive actions require it.",
    }),
  }),
);
const StartedBody = named(
  "StartedSession",
  object({
    ...SessionBody.properties,
    failed_sign_ins: int({
      minimum: 0,
      description: "Failed attempts for this user since the last success.",
    }),
  }),
);
const SetupBody = named(
  "Setup",
  object({
    email: string(),
    first_name: string({ blank: true }),
    last_name: string({ blank: true }),
    organization: nullable(string()),
    is_first: bool({
      description: "The link is that of the first owner, who may correct the e-mail address.",
    }),
    expires_at: dateTime(),
  }),
);

const exampleSession = {
  id: "0193d1a2-7b1c-7c3e-9f60-5e6f7a8b9c0d",
  email: "ann@example.com",
  created_at: "2026-03-02T08:15:30.120000Z",
  last_seen_at: "2026-03-02T08:15:30.120000Z",
  expires_at: "2026-03-09T08:15:30.120000Z",
  address: "203.0.113.7",
  browser: "Mozilla/5.0 (X11; Linux x86_64) …",
  is_current: true,
  is_from_key: false,
  scopes: ["*"],
  confirmed_until: null,
};
const exampleSetup = {
  email: "ann@example.com",
  first_name: "Ann",
  last_name: "",
  organization: "Acme",
  is_first: true,
  expires_at: "2026-03-03T08:15:30.120000Z",
};

const rejections = {
  401: {
    description: "Wrong credentials.",
    schema: ApiFailure,
    example: {
      type: "authentication_error",
      code: "authentication_failed",
      detail: "E-mail address or password is wrong.",
      attr: null,
    },
  },
  403: {
    description: "The request does not come from the console page.",
    schema: ApiFailure,
    example: {
      type: "authentication_error",
      code: "permission_denied",
      detail: "This endpoint is for the console only: send X-Flagkeep-Console: 1 from a page of this server.",
      attr: null,
    },
  },
  429: {
    description: "Too many attempts or parallel sign-ins. Wait for the seconds in `Retry-After`.",
    schema: ApiFailure,
    example: {
      type: "throttled_error",
      code: "throttled",
      detail: "Request was throttled. Expected available in 4 seconds.",
      attr: null,
    },
  },
};
const startedAnswers = {
  201: {
    description: "You are signed in; the cookie is in `Set-Cookie`.",
    schema: StartedBody,
    example: { ...exampleSession, failed_sign_ins: 0 },
  },
  ...rejections,
};
const deletedResponse = { 204: { description: "Gone." } };

const ClaimInput = object({
  email: optional(string({ max: 320 })),
  password: optional(string({ max: passwordLengthMax })),
  personal_api_key: optional(string({ max: 200 })),
});

export interface SessionDeps {
  metadata: Metadata;
  /** Number of servers that users sign in to; default: 1. */
  nodeCount?: () => number;
}

export function sessionRoutes({ metadata, nodeCount: nodes }: SessionDeps): Route[] {
  const signIn = new SignIn(metadata, nodes);
  const started = (call: Call, created: NewSession) =>
    new RouteResponse(
      201,
      { ...sessionBody(created, created.session.id, call.now), failed_sign_ins: created.failedBefore },
      {
        "Set-Cookie": setCookie(metadata, call.request, call.baseUrl, created.secret),
        "Cache-Control": "no-store",
      },
    );
  const signedOut = (call: Call) =>
    new RouteResponse(204, undefined, { "Set-Cookie": setCookie(metadata, call.request, call.baseUrl, "") });
  return [
    consoleRoute("POST", "/api/session", {
      summary: "Sign in",
      description:
        "With `email` and `password`, or with a `personal_api_key`: then the session has the key's current scopes and restrictions. It ends when the key is revoked, rolled, restricted or expires. After five failures, further attempts are delayed by 1, 2, 4 … 900 seconds.",
      tag: tagName,
      makesCredential: "proven",
      body: ClaimInput,
      bodyExample: { email: "ann@example.com", password: "correct horse battery staple" },
      answers: startedAnswers,
      handle: async (call) =>
        started(call, await signIn.signIn(getClaim(call.body), getLocation(call), call.now)),
    }),
    consoleRoute("GET", "/api/session", {
      summary: "Get the current session",
      description: "`session` is null without a valid session.",
      tag: tagName,
      answers: {
        200: {
          description: "The session.",
          schema: object({ session: nullable(SessionBody) }),
          example: { session: exampleSession },
        },
        403: rejections[403],
      },
      handle: (call) => {
        const found = getSession(metadata, call.request, call.baseUrl, call.now);
        return { session: found === undefined ? null : sessionBody(found, found.session.id, call.now) };
      },
    }),
    consoleRoute("DELETE", "/api/session", {
      summary: "Sign out",
      description: "Also succeeds when the session has expired.",
      tag: tagName,
      answers: { 204: { description: "Signed out." }, 403: rejections[403] },
      handle: (call) => {
        const found = getSession(metadata, call.request, call.baseUrl, call.now);
        if (found !== undefined) endSession(metadata, found.user.id, found.session.id);
        return signedOut(call);
      },
    }),
    consoleRoute("POST", "/api/session/setup/look", {
      summary: "Get a one-time link",
      description: "Shows the user of the link without using it up.",
      tag: tagName,
      body: object({ token: string({ max: 200 }) }),
      bodyExample: { token: "3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB" },
      answers: {
        200: { description: "The link works.", schema: SetupBody, example: exampleSetup },
        ...rejections,
      },
      handle: (call) => {
        const setup = findSetup(metadata.db, call.body.token, call.now);
        if (setup === undefined) throw authenticationFailed("This link was used or has expired.");
        const { user, isFirst, expiresAt } = setup;
        const organization = findOrganization(metadata.db, user.currentOrganizationId ?? "");
        return {
          email: user.email,
          first_name: user.firstName,
          last_name: user.lastName,
          organization: organization?.name ?? null,
          is_first: isFirst,
          expires_at: toApiTime(expiresAt),
        } satisfies Static<typeof SetupBody>;
      },
    }),
    consoleRoute("POST", "/api/session/setup", {
      summary: "Use a one-time link to set a password and sign in",
      description:
        "The link becomes invalid, and earlier sessions of the user end. Passwords have 12 to 256 characters. The first owner may correct the e-mail address.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        token: string({ max: 200 }),
        password: string({ max: passwordLengthMax }),
        email: optional(string({ max: 320 })),
        first_name: optional(string({ blank: true, max: 150 })),
        last_name: optional(string({ blank: true, max: 150 })),
      }),
      bodyExample: {
        token: "3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB",
        email: "ann@example.com",
        first_name: "Ann",
        password: "correct horse battery staple",
      },
      answers: startedAnswers,
      handle: async (call) => {
        const { token, password, email, first_name: firstName, last_name: lastName } = call.body;
        const answers = { token, password, email, firstName, lastName };
        return started(call, await signIn.setUp(answers, getLocation(call), call.now));
      },
    }),
    sessionRoute("POST", "/api/session/confirm", {
      summary: "Re-authenticate",
      description:
        "Required in a session for everything that creates or shows a credential, and for member levels, `approvals`, event retention, deleting a backup and archiving a project. Valid for ten minutes. A session created with a personal key sends `personal_api_key`.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        password: ClaimInput.properties.password,
        personal_api_key: ClaimInput.properties.personal_api_key,
      }),
      bodyExample: { password: "correct horse battery staple" },
      answers: {
        200: { description: "The session.", schema: SessionBody, example: exampleSession },
        ...rejections,
      },
      handle: async (call) => {
        const claim = getClaim({ email: call.user.email, ...call.body });
        const session = await signIn.confirm(call, claim, getLocation(call), call.now);
        return sessionBody({ ...call, session }, session.id, call.now);
      },
    }),
    sessionRoute("POST", "/api/session/password", {
      summary: "Update the password of the current user",
      description: "All your other sessions end.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        current_password: string({ max: passwordLengthMax }),
        password: string({ max: passwordLengthMax }),
      }),
      bodyExample: { current_password: "correct horse battery staple", password: "another few quiet words" },
      answers: { 204: { description: "Changed." }, ...rejections },
      handle: async (call) => {
        const { current_password: current, password: wanted } = call.body;
        await signIn.changePassword(call, { current, wanted }, getLocation(call), call.now);
        return new RouteResponse(204);
      },
    }),
    sessionRoute("GET", "/api/sessions", {
      summary: "List the sessions of the current user",
      description:
        "Most recently used first, not paginated: at most 50 created with your password and 50 with each key. A session created with a restricted key lists only itself.",
      tag: tagName,
      answers: {
        200: { description: "Your sessions.", schema: list(SessionBody), example: [exampleSession] },
      },
      handle: (call) =>
        listSessions(metadata.db, call.user.id, call.now)
          .filter(({ session }) => mayEnd(call, session.id))
          .map((found) => sessionBody({ user: call.user, ...found }, call.session.id, call.now)),
    }),
    sessionRoute("DELETE", "/api/sessions", {
      summary: "Delete all other sessions of the current user",
      description: "Not allowed in a session created with a restricted key.",
      tag: tagName,
      answers: deletedResponse,
      handle: (call) => {
        if (!isUnlimited(call.limits)) {
          throw permissionDenied("A session created with a restricted key can delete only itself.");
        }
        metadata.change((t) => endSessions(t, call.user.id, call.session.id));
        return new RouteResponse(204);
      },
    }),
    sessionRoute("DELETE", "/api/sessions/:id", {
      summary: "Delete a session of the current user",
      description: "A session created with a restricted key can delete only itself.",
      tag: tagName,
      answers: deletedResponse,
      handle: (call) => {
        const id = readUuid(call.params, "id");
        if (!mayEnd(call, id) || !endSession(metadata, call.user.id, id)) throw notFound();
        return new RouteResponse(204);
      },
    }),
  ];
}

/** Whether the caller may see and end this session of the same user. */
function mayEnd({ limits, session }: SessionCall, id: string): boolean {
  return isUnlimited(limits) || id === session.id;
}

/** @throws {InvalidFieldError} neither a password nor a key. */
function getClaim(body: { email?: string; password?: string; personal_api_key?: string }): Credentials {
  if (body.personal_api_key !== undefined) return { personalApiKey: body.personal_api_key };
  if (body.email === undefined) throw new InvalidFieldError("email", "required", "This field is required.");
  if (body.password === undefined)
    throw new InvalidFieldError("password", "required", "This field is required.");
  return { email: body.email, password: body.password };
}

function getLocation({ request, address }: Call): ClientInfo {
  return { address, browser: request.headers.get("user-agent") };
}

function sessionBody(
  signedIn: { session: Session; user: { email: string }; limits: { scopes: string[] } },
  currentId: string,
  now: Date,
): Static<typeof SessionBody> {
  const { session } = signedIn;
  return {
    id: session.id,
    email: signedIn.user.email,
    created_at: toApiTime(session.createdAt),
    last_seen_at: toApiTime(session.lastSeenAt),
    expires_at: toApiTime(getEnd(session)),
    address: session.address,
    browser: session.browser,
    is_current: session.id === currentId,
    is_from_key: session.keyId !== null,
    scopes: signedIn.limits.scopes,
    confirmed_until: toApiTimeOrNull(confirmedUntil(session, now)),
  };
}
