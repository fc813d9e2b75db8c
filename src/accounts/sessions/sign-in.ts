/** Signing in, by password or by a personal key, and being asked again. */

import { authenticationFailed, notAuthenticated } from "../../http/failure.ts";
import { InvalidField } from "../../lib/errors.ts";
import { recordActivity } from "../activity.ts";
import { authenticate } from "../key-ring.ts";
import type { Metadata } from "../metadata.ts";
import { findUserByEmail, type User } from "../users.ts";
import { Attempts } from "./attempts.ts";
import { checkNewPassword, hashOfPassword, isOutdated, isPasswordOf } from "./passwords.ts";
import {
  confirmSession,
  findSession,
  insertSession,
  type Place,
  type Session,
  type SignedIn,
} from "./sessions.ts";
import { changePassword, findSetup, passwordOf, storePassword, useSetupLink } from "./setup-links.ts";

/** Who somebody says to be. */
export type Claim = { email: string; password: string } | { personalApiKey: string };

export interface NewSession extends SignedIn {
  /** For the cookie. */
  secret: string;
  /** Attempts for this user that failed since the last that did not. */
  failedBefore: number;
}

/** Failures of one user that the activity log tells of: one in this time. */
const recordEveryMs = 60_000;

/** The same whether the address is known or not, the user active or not, the password set or not. */
const wrongWords = "E-mail address or password is wrong.";

/** For somebody who is signed in, so that there is nothing to hide but the password. */
const wrongPassword = (field: string) => authenticationFailed("The password is wrong.", field);

export class SignIn {
  private readonly attempts: Attempts;
  /** When a failure was last recorded, by user: bounded by the number of users. */
  private readonly recordedAt = new Map<number, number>();

  /** @param fronts how many servers people sign in to. */
  constructor(
    private readonly metadata: Metadata,
    fronts?: () => number,
  ) {
    this.attempts = new Attempts(fronts);
  }

  /**
   * Begins a session.
   *
   * @throws {HttpFailure} 401, or 429 after too many attempts.
   */
  async signIn(claim: Claim, place: Place, now: Date): Promise<NewSession> {
    const { metadata } = this;
    if ("personalApiKey" in claim) {
      const attempt = this.attempts.begin(place.address, "", now.getTime());
      const holder = authenticate(metadata, claim.personalApiKey.trim(), now);
      if (holder === undefined || holder.key.scopes.length === 0) {
        attempt.failed(undefined);
        throw authenticationFailed("This personal API key does not work.");
      }
      const failedBefore = attempt.succeeded(holder.user.id);
      return this.begin(holder.user, place, failedBefore, now, holder.key.id);
    }
    const { user, failedBefore } = await this.verify(claim.email, claim.password, place, now);
    return this.begin(user, place, failedBefore, now);
  }

  /**
   * Uses a one-time link up and begins a session.
   *
   * @throws {NotFound} the link does not work. @throws {InvalidField} @throws {HttpFailure} 429.
   */
  async setUp(
    answers: { token: string; password: string; email?: string; firstName?: string; lastName?: string },
    place: Place,
    now: Date,
  ): Promise<NewSession> {
    const { metadata } = this;
    const { token, password } = answers;
    const setup = findSetup(metadata.db, token, now);
    if (setup === undefined) throw authenticationFailed("This link is used up or has expired.");
    checkNewPassword(password, answers.email?.trim() || setup.user.email);
    const passwordHash = await hashOfPassword(password);
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
      recordActivity(t, { ...activityOf(user), by: user.id, activity: "password_set", now });
      return user;
    });
    return this.begin(changed, place, 0, now);
  }

  /**
   * Asks a signed-in person again: for the password, or for the key that the session was made from.
   *
   * @throws {HttpFailure} 401, 429.
   */
  async confirm(
    signedIn: { session: Session; user: User },
    claim: Claim,
    place: Place,
    now: Date,
  ): Promise<Session> {
    const { session, user } = signedIn;
    if (session.keyId === null) {
      const password = "password" in claim ? claim.password : "";
      await this.verify(user.email, password, place, now, wrongPassword("password"));
    } else {
      const attempt = this.attempts.begin(place.address, user.email, now.getTime());
      const key = "personalApiKey" in claim ? claim.personalApiKey.trim() : "";
      if (authenticate(this.metadata, key, now)?.key.id !== session.keyId) {
        attempt.failed(user.id);
        throw authenticationFailed(
          "This is not the personal API key that you signed in with.",
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
   * Changes the password of a signed-in person; all other sessions end.
   *
   * @throws {HttpFailure} 401, 429. @throws {InvalidField}
   */
  async changePassword(
    signedIn: { session: Session; user: User },
    passwords: { current: string; wanted: string },
    place: Place,
    now: Date,
  ): Promise<void> {
    const { session, user } = signedIn;
    if (session.keyId !== null) {
      throw new InvalidField("password", "not_permitted", "Sign in with the password to change it.");
    }
    const wrong = wrongPassword("current_password");
    const { hash: verified } = await this.verify(user.email, passwords.current, place, now, wrong);
    checkNewPassword(passwords.wanted, user.email);
    const hash = await hashOfPassword(passwords.wanted);
    this.metadata.change((t) => {
      if (passwordOf(t, user.id) !== verified) throw wrong;
      changePassword(t, user.id, hash, now, session.id);
      recordActivity(t, { ...activityOf(user), by: user.id, activity: "password_set", now });
    });
  }

  /**
   * Finds the user of an address whose password this is; what is stored of it is brought up to date.
   *
   * @returns with the stored hash, which was still the user's after the time that hashing takes.
   * @throws {HttpFailure} the refusal, or 429.
   */
  private async verify(
    email: string,
    password: string,
    place: Place,
    now: Date,
    refusal = authenticationFailed(wrongWords),
  ): Promise<{ user: User; hash: string; failedBefore: number }> {
    const { metadata } = this;
    const attempt = this.attempts.begin(place.address, email, now.getTime());
    const user = findUserByEmail(metadata.db, email);
    for (;;) {
      const hash = user?.isActive ? passwordOf(metadata.db, user.id) : undefined;
      if (!(await isPasswordOf(hash, password)) || user === undefined || hash === undefined) {
        attempt.failed(user?.id);
        if (user !== undefined) this.recordFailure(user, place, now);
        throw refusal;
      }
      const fresh = isOutdated(hash) ? await hashOfPassword(password) : hash;
      const isPresent = metadata.change((t) => {
        if (passwordOf(t, user.id) !== hash) return false;
        if (fresh !== hash) storePassword(t, user.id, fresh, now);
        return true;
      });
      if (isPresent) return { user, hash: fresh, failedBefore: attempt.succeeded(user.id) };
    }
  }

  private begin(user: User, place: Place, failedBefore: number, now: Date, keyId?: string): NewSession {
    const { secret } = this.metadata.change((t) => insertSession(t, { userId: user.id, keyId }, place, now));
    // The user may have been switched off while the password was verified.
    const signedIn = findSession(this.metadata, secret, now);
    if (signedIn === undefined) throw authenticationFailed(wrongWords);
    return { ...signedIn, secret, failedBefore };
  }

  private recordFailure(user: User, place: Place, now: Date): void {
    const last = this.recordedAt.get(user.id);
    if (last !== undefined && now.getTime() - last < recordEveryMs) return;
    this.recordedAt.set(user.id, now.getTime());
    this.metadata.change((t) =>
      recordActivity(t, {
        ...activityOf(user),
        by: { job_type: "sign_in", job_id: place.address ?? "unknown address", payload: {} },
        activity: "sign_in_failed",
        now,
      }),
    );
  }
}

function activityOf(user: User) {
  return {
    organizationId: user.currentOrganizationId ?? undefined,
    scope: "User",
    itemId: user.id,
    name: user.email,
    changes: [],
  };
}
