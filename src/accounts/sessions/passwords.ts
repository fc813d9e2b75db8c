/**
 * Password policy and hashing.
 *
 * Hashing shares Bun's native threads with the journal's `fdatasync`: two parallel verifications delay captures by tens
 * of milliseconds, eight by most of a second. So one runs at a time per process, and a full queue rejects.
 */

import { CapacityExceededError, Semaphore } from "../../lib/concurrency.ts";
import { InvalidFieldError, TooManyAttemptsError } from "../../lib/errors.ts";

const lengthMin = 12;
const lengthMax = 256;
/** Queued behind the running verification. */
const waitingMax = 20;
const argon2 = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Verified for users without a password, so that rejection takes equally long. Hash of an unknown value. */
let dummyHash: string | undefined;

const gate = new Semaphore({ total: 1, perKey: 1, waiting: waitingMax });

/** @throws {TooManyAttemptsError} the queue is full. */
export async function hashPassword(password: string): Promise<string> {
  return await inTurn(() => Bun.password.hash(password, argon2));
}

/**
 * Whether the password matches the hash.
 *
 * @param hash undefined: no password is set; returns false after the same time.
 * @throws {TooManyAttemptsError} the queue is full.
 */
export async function isPasswordOf(hash: string | undefined, password: string): Promise<boolean> {
  return await inTurn(async () => {
    dummyHash ??= await Bun.password.hash(crypto.randomUUID(), argon2);
    // Truncate over-long passwords, so that response time does not depend on length.
    const isRight = await Bun.password.verify(password.slice(0, lengthMax), hash ?? dummyHash);
    return isRight && hash !== undefined && password.length <= lengthMax;
  });
}

/** Whether a hash was created with parameters other than the current ones. */
export function isOutdated(hash: string): boolean {
  return !hash.startsWith(`$argon2id$v=19$m=${argon2.memoryCost},t=${argon2.timeCost},`);
}

/**
 * Checks a new password: 12 to 256 characters, not the e-mail address, and not easily guessed.
 *
 * @throws {InvalidFieldError} on `password`.
 */
export function checkNewPassword(password: string, email: string): void {
  const length = [...password].length;
  if (length < lengthMin) {
    throw rejectedPassword("min_length", `Use at least ${lengthMin} characters; several words are fine.`);
  }
  if (password.length > lengthMax) {
    throw rejectedPassword("max_length", `Ensure this field has no more than ${lengthMax} characters.`);
  }
  const plain = password.toLowerCase();
  const address = email.toLowerCase();
  if (plain === address || (address.startsWith(`${plain}@`) && plain !== "")) {
    throw rejectedPassword("is_email", "Do not use your e-mail address as the password.");
  }
  if (isCommon(plain)) {
    throw rejectedPassword("too_common", "This password is too common.");
  }
}

function rejectedPassword(code: string, message: string): InvalidFieldError {
  return new InvalidFieldError("password", code, message);
}

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  let release: () => void;
  try {
    release = await gate.enter(0);
  } catch (error) {
    if (error instanceof CapacityExceededError)
      throw new TooManyAttemptsError(1, "Too many parallel sign-ins. Try again.");
    throw error;
  }
  try {
    return await work();
  } finally {
    release();
  }
}

/** Keyboard rows; runs are matched in both directions. */
const keyRows = [
  "abcdefghijklmnopqrstuvwxyz",
  "01234567890123456789",
  "qwertyuiopasdfghjklzxcvbnm",
  "qwertzuiopasdfghjklyxcvbnm",
  "azertyuiopqsdfghjklmwxcvbn",
  "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
  "1q2w3e4r5t6y7u8i9o0p",
  "q1w2e3r4t5y6u7i8o9p0",
  "qazwsxedcrfvtgbyhnujm",
];
const keyRuns = keyRows.flatMap((row) => [row, [...row].reverse().join("")]);

/** Words in the most common passwords; few of the thousand most common have twelve characters otherwise. */
const commonWords = [
  ..."password passwort passw0rd p@ssword p@ssw0rd pa$$word pass admin administrator root user guest login".split(
    " ",
  ),
  ..."welcome letmein changeme default secret test master hello iloveyou loveyou sunshine princess".split(
    " ",
  ),
  ..."monkey dragon football baseball superman batman trustno michael jennifer jordan shadow computer".split(
    " ",
  ),
  ..."internet qwerty qwertz azerty abc abcd flagkeep company summer winter spring autumn".split(" "),
];

/** Whether it consists of common words, keyboard runs and repetitions only. */
function isCommon(plain: string): boolean {
  if (/^(.{1,6})\1+$/.test(plain)) return true;
  let rest = plain;
  while (rest !== "") {
    const part = commonStart(rest);
    if (part === 0) return false;
    rest = rest.slice(part);
  }
  return true;
}

/** Length of the common part at the start of `rest`; 0 if it does not start with one. */
function commonStart(rest: string): number {
  const word = Math.max(
    0,
    ...commonWords.filter((known) => rest.startsWith(known)).map(({ length }) => length),
  );
  const repeated = /^(.)\1{2,}/.exec(rest)?.[0].length ?? 0;
  const tail = /^[\d!.?*#$@_-]{1,6}$/.test(rest) ? rest.length : 0;
  return Math.max(word, repeated, tail, runLength(rest));
}

/** Length of the run of at least three keys at the start of `rest`. */
function runLength(rest: string): number {
  const start = rest.slice(0, 3);
  let longest = 0;
  for (const run of keyRuns) {
    for (let at = run.indexOf(start); start.length === 3 && at >= 0; at = run.indexOf(start, at + 1)) {
      let length = 3;
      while (length < rest.length && at + length < run.length && rest[length] === run[at + length]) length++;
      longest = Math.max(longest, length);
    }
  }
  return longest;
}
