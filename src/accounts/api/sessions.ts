/** The routes of signing in: for the console's page only, no key may call them. */

import type { Static } from "@sinclair/typebox";
import { authenticationFailed, notFound, permissionDenied } from "../../http/failure.ts";
import { readUuid } from "../../http/path.ts";
import { type Call, Reply, type Route } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
  uuid,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import { isUnlimited } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { findOrganization } from "../organizations.ts";
import { sessionOf, setCookie } from "../sessions/cookie.ts";
import {
  confirmedUntil,
  endOf,
  endSession,
  endSessions,
  listSessions,
  type Place,
  type Session,
} from "../sessions/sessions.ts";
import { findSetup } from "../sessions/setup-links.ts";
import { type Claim, type NewSession, SignIn } from "../sessions/sign-in.ts";
import { consoleRoute, type SessionCall, sessionRoute } from "./routes.ts";

const tagName = "Sessions";
/** Longer ones are nobody's; they are refused in the same words as others. */
const passwordLengthMax = 1_024;

const SessionBody = named(
  "Session",
  object({
    id: uuid(),
    email: text({ description: "Of the person who is signed in." }),
    created_at: instant(),
    last_seen_at: instant({ description: "Exact to five minutes." }),
    expires_at: instant({ description: "Seven days after it was last used, at most thirty in all." }),
    address: text({ blank: true, description: "Where it was begun." }),
    browser: text({ blank: true }),
    is_current: bool(),
    is_from_key: bool({
      description: "Created with a personal key: has its current scopes, and ends with it.",
    }),
    scopes: list(text(), { description: "`*`: everything that the person may." }),
    confirmed_until: nullable(instant(), {
      description: "Until then nothing asks for the password again; null: some things do.",
    }),
  }),
);
const StartedBody = named(
  "StartedSession",
  object({
    ...SessionBody.properties,
    failed_sign_ins: int({
      minimum: 0,
      description: "Attempts for this person that failed since the last success.",
    }),
  }),
);
const SetupBody = named(
  "Setup",
  object({
    email: text(),
    first_name: text({ blank: true }),
    last_name: text({ blank: true }),
    organization: nullable(text()),
    is_first: bool({ description: "No password was set yet." }),
    expires_at: instant(),
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

const refusals = {
  401: {
    description: "Not who you say to be.",
    schema: ApiFailure,
    example: {
      type: "authentication_error",
      code: "authentication_failed",
      detail: "E-mail address or password is wrong.",
      attr: null,
    },
  },
  403: {
    description: "Not from the console's own page.",
    schema: ApiFailure,
    example: {
      type: "authentication_error",
      code: "permission_denied",
      detail: "Only the console may call this: send X-Flagkeep-Console: 1 from a page of this server.",
      attr: null,
    },
  },
  429: {
    description: "Too many attempts, or too many at once. Wait for the seconds in `Retry-After`.",
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
  ...refusals,
};
const goneAnswer = { 204: { description: "Gone." } };

const ClaimInput = object({
  email: optional(text({ max: 320 })),
  password: optional(text({ max: passwordLengthMax })),
  personal_api_key: optional(text({ max: 200 })),
});

export interface SessionDeps {
  metadata: Metadata;
  /** How many servers people sign in to; left out: this one. */
  fronts?: () => number;
}

export function sessionRoutes({ metadata, fronts }: SessionDeps): Route[] {
  const signIn = new SignIn(metadata, fronts);
  const started = (call: Call, made: NewSession) =>
    new Reply(
      201,
      { ...sessionBody(made, made.session.id, call.now), failed_sign_ins: made.failedBefore },
      {
        "Set-Cookie": setCookie(metadata, call.request, call.baseUrl, made.secret),
        "Cache-Control": "no-store",
      },
    );
  const signedOut = (call: Call) =>
    new Reply(204, undefined, { "Set-Cookie": setCookie(metadata, call.request, call.baseUrl, "") });
  return [
    consoleRoute("POST", "/api/session", {
      summary: "Sign in",
      description:
        "With `email` and `password`, or with a `personal_api_key`: then the session has the key's current scopes and restrictions. It ends when the key is revoked, rolled, narrowed or expires. After five failures each further one waits 1, 2, 4 … 900 seconds.",
      tag: tagName,
      makesCredential: "proven",
      body: ClaimInput,
      bodyExample: { email: "ann@example.com", password: "correct horse battery staple" },
      answers: startedAnswers,
      handle: async (call) => started(call, await signIn.signIn(claimOf(call.body), placeOf(call), call.now)),
    }),
    consoleRoute("GET", "/api/session", {
      summary: "Get the current session",
      description: "`session` is null when nobody is signed in.",
      tag: tagName,
      answers: {
        200: {
          description: "The session.",
          schema: object({ session: nullable(SessionBody) }),
          example: { session: exampleSession },
        },
        403: refusals[403],
      },
      handle: (call) => {
        const found = sessionOf(metadata, call.request, call.baseUrl, call.now);
        return { session: found === undefined ? null : sessionBody(found, found.session.id, call.now) };
      },
    }),
    consoleRoute("DELETE", "/api/session", {
      summary: "Sign out",
      description: "Also when the session is over already.",
      tag: tagName,
      answers: { 204: { description: "Signed out." }, 403: refusals[403] },
      handle: (call) => {
        const found = sessionOf(metadata, call.request, call.baseUrl, call.now);
        if (found !== undefined) endSession(metadata, found.user.id, found.session.id);
        return signedOut(call);
      },
    }),
    consoleRoute("POST", "/api/session/setup/look", {
      summary: "Get a one-time link",
      description: "Tells whom it is for; it works afterwards as before.",
      tag: tagName,
      body: object({ token: text({ max: 200 }) }),
      bodyExample: { token: "3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB" },
      answers: {
        200: { description: "The link works.", schema: SetupBody, example: exampleSetup },
        ...refusals,
      },
      handle: (call) => {
        const setup = findSetup(metadata.db, call.body.token, call.now);
        if (setup === undefined) throw authenticationFailed("This link is used up or has expired.");
        const { user, isFirst, expiresAt } = setup;
        const organization = findOrganization(metadata.db, user.currentOrganizationId ?? "");
        return {
          ...{ email: user.email, first_name: user.firstName, last_name: user.lastName },
          organization: organization?.name ?? null,
          is_first: isFirst,
          expires_at: toWire(expiresAt),
        } satisfies Static<typeof SetupBody>;
      },
    }),
    consoleRoute("POST", "/api/session/setup", {
      summary: "Use a one-time link to set a password and sign in",
      description:
        "The link is dead afterwards, and earlier sessions of the person end. 12 to 256 characters. The first owner may put the e-mail address right.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        token: text({ max: 200 }),
        password: text({ max: passwordLengthMax }),
        email: optional(text({ max: 320 })),
        first_name: optional(text({ blank: true, max: 150 })),
        last_name: optional(text({ blank: true, max: 150 })),
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
        return started(call, await signIn.setUp(answers, placeOf(call), call.now));
      },
    }),
    sessionRoute("POST", "/api/session/confirm", {
      summary: "Re-authenticate",
      description:
        "Some things ask for it: secret keys, keys that may do everything, levels of members, deleting a backup, archiving a project. It holds for ten minutes. In a session made from a personal key, `personal_api_key`.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        password: ClaimInput.properties.password,
        personal_api_key: ClaimInput.properties.personal_api_key,
      }),
      bodyExample: { password: "correct horse battery staple" },
      answers: {
        200: { description: "The session.", schema: SessionBody, example: exampleSession },
        ...refusals,
      },
      handle: async (call) => {
        const claim = claimOf({ email: call.user.email, ...call.body });
        const session = await signIn.confirm(call, claim, placeOf(call), call.now);
        return sessionBody({ ...call, session }, session.id, call.now);
      },
    }),
    sessionRoute("POST", "/api/session/password", {
      summary: "Update the password of the current user",
      description: "All your other sessions end.",
      tag: tagName,
      makesCredential: "proven",
      body: object({
        current_password: text({ max: passwordLengthMax }),
        password: text({ max: passwordLengthMax }),
      }),
      bodyExample: { current_password: "correct horse battery staple", password: "another few quiet words" },
      answers: { 204: { description: "Changed." }, ...refusals },
      handle: async (call) => {
        const { current_password: current, password: wanted } = call.body;
        await signIn.changePassword(call, { current, wanted }, placeOf(call), call.now);
        return new Reply(204);
      },
    }),
    sessionRoute("GET", "/api/sessions", {
      summary: "List the sessions of the current user",
      description:
        "The most recently used first, not in pages: at most 50 of your password and 50 of each key. A session that was created with a restricted key sees only itself.",
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
      description: "Not for a session that was created with a restricted key.",
      tag: tagName,
      answers: goneAnswer,
      handle: (call) => {
        if (!isUnlimited(call.limits)) {
          throw permissionDenied("A session that was created with a restricted key ends only itself.");
        }
        metadata.change((t) => endSessions(t, call.user.id, call.session.id));
        return new Reply(204);
      },
    }),
    sessionRoute("DELETE", "/api/sessions/:id", {
      summary: "Delete a session of the current user",
      description: "A session that was created with a restricted key ends only itself.",
      tag: tagName,
      answers: goneAnswer,
      handle: (call) => {
        const id = readUuid(call.params, "id");
        if (!mayEnd(call, id) || !endSession(metadata, call.user.id, id)) throw notFound();
        return new Reply(204);
      },
    }),
  ];
}

/** Whether the caller may see and end this session of the same user. */
function mayEnd({ limits, session }: SessionCall, id: string): boolean {
  return isUnlimited(limits) || id === session.id;
}

/** @throws {InvalidField} neither a password nor a key. */
function claimOf(body: { email?: string; password?: string; personal_api_key?: string }): Claim {
  if (body.personal_api_key !== undefined) return { personalApiKey: body.personal_api_key };
  if (body.email === undefined) throw new InvalidField("email", "required", "This field is required.");
  if (body.password === undefined) throw new InvalidField("password", "required", "This field is required.");
  return { email: body.email, password: body.password };
}

function placeOf({ request, address }: Call): Place {
  return { address, browser: request.headers.get("user-agent") };
}

function sessionBody(
  of: { session: Session; user: { email: string }; limits: { scopes: string[] } },
  currentId: string,
  now: Date,
): Static<typeof SessionBody> {
  const { session } = of;
  return {
    id: session.id,
    email: of.user.email,
    created_at: toWire(session.createdAt),
    last_seen_at: toWire(session.lastSeenAt),
    expires_at: toWire(endOf(session)),
    address: session.address,
    browser: session.browser,
    is_current: session.id === currentId,
    is_from_key: session.keyId !== null,
    scopes: of.limits.scopes,
    confirmed_until: toWireOrNull(confirmedUntil(session, now)),
  };
}
