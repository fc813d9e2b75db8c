/** The signed-in user and the current project. */

import { computed, signal } from "@preact/signals";
import { type ApiError, request, signInAgain, toApiError } from "./api.ts";
import type { Me, Session as SessionOfList, StartedSession } from "./api-types.ts";
import { mePath, projectsPath, takePrefetched } from "./prefetch.ts";
import { forgetVisits } from "./recent.ts";
import { clearResourceCache } from "./resource.ts";
import { sessionPath } from "./server.ts";
import { readPreference, savePreference } from "./storage.ts";
import { notifyTabs } from "./tabs.ts";
import { clearUnsaved, restoreUnsaved } from "./unsaved-drafts.ts";

const levels = { member: 1, admin: 8, owner: 15 } as const;

export interface ProjectShort {
  id: number;
  name: string;
  api_token: string;
  organization: string;
  timezone?: string;
  week_start_day?: number | null;
  ingested_event?: boolean;
}

export type { Me };

/** Failed sign-ins before it are only in the response to signing in. */
export type SessionFacts = Partial<StartedSession> & SessionOfList;

export type Session =
  | { state: "unknown" }
  | { state: "out"; failure?: ApiError }
  | { state: "unreachable"; failure: ApiError }
  | { state: "in"; me: Me; facts: SessionFacts };

export const session = signal<Session>({ state: "unknown" });
export const projects = signal<readonly ProjectShort[]>([]);
const selectedProjectId = signal<number | undefined>(undefined);

export const me = computed<Me | undefined>(() =>
  session.value.state === "in" ? session.value.me : undefined,
);
export const project = computed<ProjectShort | undefined>(() => {
  const all = projects.value;
  return (
    all.find(({ id }) => id === selectedProjectId.value) ??
    all.find(({ id }) => id === me.value?.team?.id) ??
    all[0]
  );
});
const level = computed(() => me.value?.organization?.membership_level ?? 0);
export const isAdmin = computed(() => level.value >= levels.admin);
export const isOwner = computed(() => level.value >= levels.owner);
export const isOperator = computed(() => me.value?.is_staff === true);

const startsDone = signal<ReadonlySet<string>>(new Set(readPreference("started")?.split(" ")));
/** Whether the first steps in the project are done, as seen by this browser: the menu hides them then. */
export const isStartDone = computed(() => startsDone.value.has(String(project.value?.id)));

/** Facts about the steps of Get started, for the menu. */
export const startFacts = signal({ hasFlags: false, isEvaluated: false, hasSchedule: false });
/**
 * Which steps of Get started are done: send an event, create a flag, see it evaluated; for operators also to schedule
 * backups.
 */
export const startSteps = computed<readonly boolean[]>(() => {
  const { hasFlags, isEvaluated, hasSchedule } = startFacts.value;
  const steps = [project.value?.ingested_event === true, hasFlags, isEvaluated];
  return isOperator.value ? [...steps, hasSchedule] : steps;
});

/** Stores that the first steps are done or dismissed. */
export function markStartDone(): void {
  if (project.value === undefined || isStartDone.value) return;
  startsDone.value = new Set([...startsDone.value, String(project.value.id)]);
  savePreference("started", [...startsDone.value].join(" "));
}

/** API path within the current project. */
export function inProject(rest: string): string {
  return `/api/projects/${project.value?.id ?? "@current"}/${rest}`;
}

/** Set when a session expired while its page stays open; called with whether the same user has signed in again. */
export const sessionExpired = signal<((isBack: boolean) => void) | undefined>(undefined);
let back: Promise<boolean> | undefined;

signInAgain.ask = async () => {
  if (session.peek().state !== "in") return false;
  back ??= new Promise((resolve) => {
    sessionExpired.value = (isBack) => {
      back = undefined;
      sessionExpired.value = undefined;
      resolve(isBack);
    };
  });
  return await back;
};

/** Shows only the sign-in form. Unsaved drafts stay until another user signs in. */
export function leaveSession(failure?: ApiError): void {
  clearResourceCache();
  forgetVisits();
  session.value = { state: "out", ...(failure ? { failure } : {}) };
  sessionExpired.peek()?.(false);
}

/** Uses the prefetched response, if any. */
async function requestEarly<Answer>(path: string): Promise<Answer> {
  return ((await takePrefetched(path)) as Answer | undefined) ?? (await request<Answer>(path));
}

interface ReadSession {
  facts: SessionFacts;
  me: Me;
  projects: readonly ProjectShort[];
}

/** @returns undefined if no user is signed in */
async function readSession(get: <Answer>(path: string) => Promise<Answer>): Promise<ReadSession | undefined> {
  const { session: facts } = await get<{ session: SessionFacts | null }>(sessionPath);
  if (facts === null) return undefined;
  const [user, page] = await Promise.all([
    get<Me>(mePath),
    // A session created with a key that is limited to projects sees only those.
    get<{ results: ProjectShort[] }>(projectsPath),
  ]);
  return { facts, me: user, projects: page.results };
}

function enterSession({ facts, me: user, projects: all }: ReadSession): void {
  const named = new URLSearchParams(location.search).get("project") ?? readPreference("project");
  projects.value = all;
  // Another tab may have chosen another project since this one was opened.
  if (selectedProjectId.peek() === undefined && named !== null) selectedProjectId.value = Number(named);
  restoreUnsaved(user.uuid);
  session.value = { state: "in", me: user, facts };
}

/** Loads the session and its projects. */
export async function loadSession(): Promise<void> {
  try {
    const found = await readSession(requestEarly);
    if (found) enterSession(found);
    else session.value = { state: "out" };
  } catch (error) {
    const failure = toApiError(error);
    if (failure.isSignedOut) session.value = { state: "out" };
    // The key may not read its user: without this the user could not return to the form.
    else if (failure.status === 403) await signOut(failure);
    else session.value = { state: "unreachable", failure };
  }
}

/**
 * Signs in with a password, or with a personal key that then limits the session. Returns the number of failed attempts
 * since the last success.
 */
export async function signIn(
  body: { email: string; password: string } | { personal_api_key: string },
): Promise<number> {
  const before = me.peek()?.uuid;
  const started = await request<SessionFacts>(sessionPath, { method: "POST", body });
  clearResourceCache();
  await loadSession();
  const now = session.peek();
  if (now.state === "out" && now.failure) throw now.failure;
  notifyTabs("session");
  sessionExpired.peek()?.(me.peek()?.uuid === before);
  return started.failed_sign_ins ?? 0;
}

export async function signOut(failure?: ApiError): Promise<void> {
  await request(sessionPath, { method: "DELETE" }).catch(() => undefined);
  clearUnsaved();
  leaveSession(failure);
  notifyTabs("session");
}

const followAgainMs = 1_000;
let follows = 0;

/**
 * After another tab signed in or out: asks to sign in, or continues as the user who is signed in now. Repeats reading
 * the session until it is known: this page must not act as one user under the name of another.
 */
export async function followSession(): Promise<void> {
  follows += 1;
  const turn = follows;
  while (turn === follows) {
    try {
      // Prefetched responses may be those of the former user.
      const found = await readSession(request);
      if (turn !== follows) return;
      if (found) followTo(found);
      else void signInAgain.ask();
      return;
    } catch (error) {
      // The key of the new session may not read its user.
      if (toApiError(error).status === 403) return await loadSession();
      await new Promise((resolve) => setTimeout(resolve, followAgainMs));
    }
  }
}

function followTo(found: ReadSession): void {
  const isSame = me.peek()?.uuid === found.me.uuid;
  if (!isSame) clearResourceCache();
  // Also for the same user, who may have signed in with a key that limits the session.
  enterSession(found);
  sessionExpired.peek()?.(isSame);
}

export function chooseProject(id: number): void {
  savePreference("project", String(id));
  clearResourceCache();
  selectedProjectId.value = id;
}
