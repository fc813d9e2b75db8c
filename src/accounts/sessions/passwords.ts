/**
 * Passwords: what is accepted, and how they are hashed.
 *
 * Hashing shares Bun's native threads with the journal's `fdatasync`: two verifications at once make captures wait
 * for tens of milliseconds, eight for most of a second. So there is one at a time in the process, and whoever comes
 * when many wait is sent away.
 */

import { InvalidField, TooManyAttempts } from "../../lib/errors.ts";
import { Semaphore, SemaphoreFull } from "../../lib/semaphore.ts";

const lengthMin = 12;
const lengthMax = 256;
/** Waiting for the one that is verified. */
const waitingMax = 20;
const argon2 = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Of somebody who has none: takes as long to refuse as a real one. Nobody knows what it is the hash of. */
let dummyHash: string | undefined;

const gate = new Semaphore({ total: 1, perKey: 1, waiting: waitingMax });

/** @throws {TooManyAttempts} too many wait. */
export async function hashOfPassword(password: string): Promise<string> {
  return await inTurn(() => Bun.password.hash(password, argon2));
}

/**
 * Whether the password is the one of the hash.
 *
 * @param hash undefined: there is none; the answer is no, after the same time.
 * @throws {TooManyAttempts} too many wait.
 */
export async function isPasswordOf(hash: string | undefined, password: string): Promise<boolean> {
  return await inTurn(async () => {
    dummyHash ??= await Bun.password.hash(crypto.randomUUID(), argon2);
    // Longer ones can be nobody's; the time it takes to refuse them shall not depend on their length.
    const isRight = await Bun.password.verify(password.slice(0, lengthMax), hash ?? dummyHash);
    return isRight && hash !== undefined && password.length <= lengthMax;
  });
}

/** Whether a hash was made with other figures than those of today. */
export function isOutdated(hash: string): boolean {
  return !hash.startsWith(`$argon2id$v=19$m=${argon2.memoryCost},t=${argon2.timeCost},`);
}

/**
 * Checks a new password: 12 to 256 characters, not the e-mail address, none of those that are guessed first.
 *
 * @throws {InvalidField} on `password`.
 */
export function checkNewPassword(password: string, email: string): void {
  const length = [...password].length;
  if (length < lengthMin) {
    throw refusedPassword("min_length", `Use at least ${lengthMin} characters; several words are fine.`);
  }
  if (password.length > lengthMax) {
    throw refusedPassword("max_length", `Ensure this field has no more than ${lengthMax} characters.`);
  }
  const plain = password.toLowerCase();
  const address = email.toLowerCase();
  if (plain === address || (address.startsWith(`${plain}@`) && plain !== "")) {
    throw refusedPassword("is_email", "Do not use your e-mail address as the password.");
  }
  if (isCommon(plain)) {
    throw refusedPassword("too_common", "This password is among those that are guessed first.");
  }
}

function refusedPassword(code: string, message: string): InvalidField {
  return new InvalidField("password", code, message);
}

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  let leave: () => void;
  try {
    leave = await gate.enter(0);
  } catch (error) {
    if (error instanceof SemaphoreFull)
      throw new TooManyAttempts(1, "Too many people sign in at once; try again.");
    throw error;
  }
  try {
    return await work();
  } finally {
    leave();
  }
}

/** Rows that fingers run along, there and back. */
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

/** Words that the commonest passwords are made of; few of the thousand commonest have twelve characters otherwise. */
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

/** Nothing but common words, runs of keys and what is repeated. */
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

/** Length of the common part that a text begins with; 0 when it is none. */
function commonStart(rest: string): number {
  const word = Math.max(
    0,
    ...commonWords.filter((known) => rest.startsWith(known)).map(({ length }) => length),
  );
  const repeated = /^(.)\1{2,}/.exec(rest)?.[0].length ?? 0;
  const tail = /^[\d!.?*#$@_-]{1,6}$/.test(rest) ? rest.length : 0;
  return Math.max(word, repeated, tail, runLength(rest));
}

/** Length of the run of at least three keys that a text begins with. */
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
