/** Signing in by password or personal key, and re-authentication. */

import { authenticationFailed, notAuthenticated } from "../../http/http-error.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { recordActivity } from "../activity.ts";
import { authenticate } from "../key-index.ts";
import type { Metadata } from "../metadata.ts";
import { findUserByEmail, type User } from "../users.ts";
import { checkNewPassword, hashPassword, isOutdated, isPasswordOf } from "./passwords.ts";
import {
  type AuthenticatedSession,
  type ClientInfo,
  confirmSession,
  findSession,
  insertSession,
  type Session,
} from "./sessions.ts";
import { changePassword, findSetup, getPassword, storePassword, useSetupLink } from "./setup-links.ts";
import { SignInLimiter } from "./sign-in-rate-limit.ts";

export type Credentials = { email: string; password: string } | { personalApiKey: string };

export interface NewSession extends AuthenticatedSession {
  /** The cookie's value. */
  secret: string;
  /** Failed attempts for this user since the last success. */
  failedBefore: number;
}

/** The activity log records at most one failure per user in this time. */
const recordEveryMs = 60_000;

/** The same for unknown address, inactive user, missing password and wrong password. */
const invalidCredentialsMessage = "E-mail address or password is wrong.";

/** For signed-in users, where only the password is secret. */
const wrongPassword = (field: string) => authenticationFailed("The password is wrong.", field);

export class SignIn {
  private readonly attempts: SignInLimiter;
  /** Time of the last recorded failure by user: bounded by the number of users. */
  private readonly recordedAt = new Map<number, number>();

  /** @param nodes number of servers that users sign in to. */
  constructor(
    private readonly metadata: Metadata,
    nodes?: () => number,
  ) {
    this.attempts = new SignInLimiter(nodes);
  }

  /**
   * Starts a session.
   *
   * @throws {HttpError} 401, or 429 after too many attempts.
   */
  async signIn(claim: Credentials, client: ClientInfo, now: Date): Promise<NewSession> {
    const { metadata } = this;
    if ("personalApiKey" in claim) {
      const attempt = this.attempts.start(client.address, "", now.getTime());
      const holder = authenticate(metadata, claim.personalApiKey.trim(), now);
      if (holder === undefined || holder.key.scopes.length === 0) {
        attempt.failed(undefined);
        throw authenticationFailed("This personal API key is invalid.");
      }
      const failedBefore = attempt.succeeded(holder.user.id);
      return this.start(holder.user, client, failedBefore, now, holder.key.id);
    }
    const { user, failedBefore } = await this.verify(claim.email, claim.password, client, now);
    return this.start(user, client, failedBefore, now);
  }

  /**
   * Redeems a one-time link and starts a session.
   *
   * @throws {NotFoundError} the link does not work. @throws {InvalidFieldError} @throws {HttpError} 429.
   */
  async setUp(
    answers: { token: string; password: string; email?: string; firstName?: string; lastName?: string },
    clientInfo: ClientInfo,
    now: Date,
  ): Promise<NewSession> {
    const { metadata } = this;
    const { token, password } = answers;
    const setup = findSetup(metadata.db, token, now);
    if (setup === undefined) throw authenticationFailed("This link was used or has expired.");
    checkNewPassword(password, answers.email?.trim() || setup.user.email);
    const passwordHash = await hashPassword(password);
    const changed = metadata.change((t) => {
      const user = useSetupLink(
        t,
        token,
        {
          email: answers.email ?? null,
          firstName: answers.firstName ?? null,
          lastName: answers.lastName ?? null,
          passwordHash,
        },
        now,
      );
      recordActivity(t, { ...getActivity(user), by: user.id, activity: "password_set", now });
      return user;
    });
    return this.start(changed, clientInfo, 0, now);
  }

  /**
   * Re-authenticates a signed-in user by the password, or by the key that the session was created with.
   *
   * @throws {HttpError} 401, 429.
   */
  async confirm(
    signedIn: { session: Session; user: User },
    claim: Credentials,
    client: ClientInfo,
    now: Date,
  ): Promise<Session> {
    const { session, user } = signedIn;
    if (session.keyId === null) {
      const password = "password" in claim ? claim.password : "";
      await this.verify(user.email, password, client, now, wrongPassword("password"));
    } else {
      const attempt = this.attempts.start(client.address, user.email, now.getTime());
      const key = "personalApiKey" in claim ? claim.personalApiKey.trim() : "";
      if (authenticate(this.metadata, key, now)?.key.id !== session.keyId) {
        attempt.failed(user.id);
        throw authenticationFailed(
          "The session was created with a different personal API key.",
          "personal_api_key",
        );
      }
      attempt.succeeded(user.id);
    }
    const confirmed = confirmSession(this.metadata, session.id, now);
    if (confirmed === undefined) throw notAuthenticated();
    return confirmed;
  }

  /**
   * Changes the password of a signed-in user and ends all other sessions.
   *
   * @throws {HttpError} 401, 429. @throws {InvalidFieldError}
   */
  async changePassword(
    signedIn: { session: Session; user: User },
    passwords: { current: string; wanted: string },
    client: ClientInfo,
    now: Date,
  ): Promise<void> {
    const { session, user } = signedIn;
    if (session.keyId !== null) {
      throw new InvalidFieldError("password", "not_permitted", "Sign in with the password to change it.");
    }
    const wrong = wrongPassword("current_password");
    const { hash: verified } = await this.verify(user.email, passwords.current, client, now, wrong);
    checkNewPassword(passwords.wanted, user.email);
    const hash = await hashPassword(passwords.wanted);
    this.metadata.change((t) => {
      if (getPassword(t, user.id) !== verified) throw wrong;
      changePassword(t, user.id, hash, now, session.id);
      recordActivity(t, { ...getActivity(user), by: user.id, activity: "password_set", now });
    });
  }

  /**
   * Finds the user of an address by password; rehashes an outdated hash.
   *
   * @returns with the stored hash, which was still the user's after the time that hashing takes.
   * @throws {HttpError} 401 or 429.
   */
  private async verify(
    email: string,
    password: string,
    client: ClientInfo,
    now: Date,
    rejection = authenticationFailed(invalidCredentialsMessage),
  ): Promise<{ user: User; hash: string; failedBefore: number }> {
    const { metadata } = this;
    const attempt = this.attempts.start(client.address, email, now.getTime());
    const user = findUserByEmail(metadata.db, email);
    for (;;) {
      const hash = user?.isActive ? getPassword(metadata.db, user.id) : undefined;
      if (!(await isPasswordOf(hash, password)) || user === undefined || hash === undefined) {
        attempt.failed(user?.id);
        if (user !== undefined) this.recordFailure(user, client, now);
        throw rejection;
      }
      const fresh = isOutdated(hash) ? await hashPassword(password) : hash;
      const isPresent = metadata.change((t) => {
        if (getPassword(t, user.id) !== hash) return false;
        if (fresh !== hash) storePassword(t, user.id, fresh, now);
        return true;
      });
      if (isPresent) return { user, hash: fresh, failedBefore: attempt.succeeded(user.id) };
    }
  }

  private start(user: User, client: ClientInfo, failedBefore: number, now: Date, keyId?: string): NewSession {
    const { secret } = this.metadata.change((t) => insertSession(t, { userId: user.id, keyId }, client, now));
    // The user may have been deactivated during the verification.
    const signedIn = findSession(this.metadata, secret, now);
    if (signedIn === undefined) throw authenticationFailed(invalidCredentialsMessage);
    return { ...signedIn, secret, failedBefore };
  }

  private recordFailure(user: User, client: ClientInfo, now: Date): void {
    const last = this.recordedAt.get(user.id);
    if (last !== undefined && now.getTime() - last < recordEveryMs) return;
    this.recordedAt.set(user.id, now.getTime());
    this.metadata.change((t) =>
      recordActivity(t, {
        ...getActivity(user),
        by: { job_type: "sign_in", job_id: client.address ?? "unknown address", payload: {} },
        activity: "sign_in_failed",
        now,
      }),
    );
  }
}

function getActivity(user: User) {
  return {
    organizationId: user.currentOrganizationId ?? undefined,
    scope: "User",
    itemId: user.id,
    name: user.email,
    changes: [],
  };
}
