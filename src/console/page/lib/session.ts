/** Who is signed in, and in which project that one works. */

import { computed, signal } from "@preact/signals";
import { asFailure, ask, type Failure, signInAgain } from "./api.ts";
import { mePath, projectsPath, takeEarly } from "./early-answers.ts";
import { recall, remember } from "./memory.ts";
import { forgetAll } from "./resource.ts";
import { sessionPath } from "./server.ts";

export const levels = { member: 1, admin: 8, owner: 15 } as const;

export interface ProjectShort {
  id: number;
  name: string;
  api_token: string;
  organization: string;
  timezone?: string;
  week_start_day?: number | null;
  ingested_event?: boolean;
}

export interface Me {
  uuid: string;
  first_name: string;
  last_name: string;
  email: string;
  is_staff: boolean;
  team: ProjectShort | null;
  organization: {
    id: string;
    name: string;
    membership_level: number;
    feature_flags_access_level: number;
  } | null;
}

/** A session as the server tells of it. */
export interface SessionFacts {
  id: string;
  created_at: string;
  last_seen_at: string;
  expires_at: string;
  address: string;
  browser: string;
  is_current: boolean;
  is_from_key: boolean;
  failed_sign_ins?: number;
}

export type Session =
  | { state: "unknown" }
  | { state: "out"; failure?: Failure }
  | { state: "unreachable"; failure: Failure }
  | { state: "in"; me: Me; facts: SessionFacts };

export const session = signal<Session>({ state: "unknown" });
export const projects = signal<readonly ProjectShort[]>([]);
const chosenProject = signal<number | undefined>(undefined);

export const me = computed<Me | undefined>(() =>
  session.value.state === "in" ? session.value.me : undefined,
);
/** The project in use. */
export const project = computed<ProjectShort | undefined>(() => {
  const all = projects.value;
  return (
    all.find(({ id }) => id === chosenProject.value) ??
    all.find(({ id }) => id === me.value?.team?.id) ??
    all[0]
  );
});
/** Where the days and weeks of the project in use start. */
export const projectClock = computed(() => ({
  timezone: project.value?.timezone ?? "UTC",
  weekStartDay: project.value?.week_start_day,
}));
export const level = computed(() => me.value?.organization?.membership_level ?? 0);
export const isAdmin = computed(() => level.value >= levels.admin);
export const isOwner = computed(() => level.value >= levels.owner);
export const isOperator = computed(() => me.value?.is_staff === true);

const startsDone = signal<ReadonlySet<string>>(new Set(recall("started")?.split(" ")));
/** Whether the first steps in the project are done, as this browser has seen: they need no place in the menu then. */
export const isStartDone = computed(() => startsDone.value.has(String(project.value?.id)));

/** Remembers that the first steps are done. */
export function markStartDone(): void {
  if (project.value === undefined || isStartDone.value) return;
  startsDone.value = new Set([...startsDone.value, String(project.value.id)]);
  remember("started", [...startsDone.value].join(" "));
}

/** Path of the project in use. */
export function inProject(rest: string): string {
  return `/api/projects/${project.value?.id ?? "@current"}/${rest}`;
}

/** Set while a session is over whose page is still there: tells whether the same person has signed in again. */
export const expired = signal<((isBack: boolean) => void) | undefined>(undefined);
let back: Promise<boolean> | undefined;

signInAgain.ask = async () => {
  if (session.peek().state !== "in") return false;
  back ??= new Promise((resolve) => {
    expired.value = (isBack) => {
      back = undefined;
      expired.value = undefined;
      resolve(isBack);
    };
  });
  return await back;
};

/** Shows the form to sign in, and nothing else any more. */
export function leave(failure?: Failure): void {
  forgetAll();
  session.value = { state: "out", ...(failure ? { failure } : {}) };
  expired.peek()?.(false);
}

/** Asks, unless that was done before the page's script was there. */
async function askFirst<Answer>(path: string): Promise<Answer> {
  return ((await takeEarly(path)) as Answer | undefined) ?? (await ask<Answer>(path));
}

/** Finds out who is signed in. */
export async function loadSession(): Promise<void> {
  try {
    const { session: facts } = await askFirst<{ session: SessionFacts | null }>(sessionPath);
    if (facts === null) {
      session.value = { state: "out" };
      return;
    }
    const [who, page] = await Promise.all([
      askFirst<Me>(mePath),
      // A session made from a key that is limited to projects sees these alone.
      askFirst<{ results: ProjectShort[] }>(projectsPath),
    ]);
    const named = new URLSearchParams(location.search).get("project") ?? recall("project");
    projects.value = page.results;
    chosenProject.value = named === null ? undefined : Number(named);
    session.value = { state: "in", me: who, facts };
  } catch (error) {
    const failure = asFailure(error);
    if (failure.isSignedOut) session.value = { state: "out" };
    // By a key that may not say whose it is: without this there would be no way back to the form.
    else if (failure.status === 403) await signOut(failure);
    else session.value = { state: "unreachable", failure };
  }
}

/**
 * Signs in with a password, or with a personal key that the session is then bounded by. Returns how many attempts had
 * failed since the last success.
 */
export async function signIn(
  body: { email: string; password: string } | { personal_api_key: string },
): Promise<number> {
  const before = me.peek()?.uuid;
  const started = await ask<SessionFacts>(sessionPath, { method: "POST", body });
  forgetAll();
  await loadSession();
  const now = session.peek();
  if (now.state === "out" && now.failure) throw now.failure;
  expired.peek()?.(me.peek()?.uuid === before);
  return started.failed_sign_ins ?? 0;
}

/** Ends this session. */
export async function signOut(failure?: Failure): Promise<void> {
  await ask(sessionPath, { method: "DELETE" }).catch(() => undefined);
  leave(failure);
}

/** Works in another project from here on. */
export function chooseProject(id: number): void {
  remember("project", String(id));
  forgetAll();
  chosenProject.value = id;
}
