import { describe, expect, test } from "bun:test";
import {
  checkNewPassword,
  hashPassword,
  isOutdated,
  isPasswordOf,
} from "../../../src/accounts/sessions/passwords.ts";
import { SignInLimiter } from "../../../src/accounts/sessions/sign-in-rate-limit.ts";
import { toHttpError } from "../../../src/http/error-mapping.ts";

const rejection = (password: string, email = "ann@example.com") => {
  try {
    checkNewPassword(password, email);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("a new password", () => {
  test.each([
    ["elevenchars", "min_length"],
    ["😀😀😀😀😀😀", "min_length"],
    ["x7".repeat(129), "max_length"],
    ["Ann.Larsson@example.com", "is_email"],
    ["ann.larsson+x", "is_email"],
    ["123456789012", "too_common"],
    ["111111111111", "too_common"],
    ["password1234", "too_common"],
    ["PasswordPassword", "too_common"],
    ["1qaz2wsx3edc", "too_common"],
    ["q1w2e3r4t5y6", "too_common"],
    ["qwertyuiopasdf", "too_common"],
    ["administrator", "too_common"],
    ["abcabcabcabc", "too_common"],
    ["letmein123456!", "too_common"],
  ])("%s is rejected", (password, code) => {
    const email = password === "ann.larsson+x" ? "Ann.Larsson+x@example.com" : "ann.larsson@example.com";
    expect(rejection(password, email)).toBe(code);
  });

  test.each([
    "correct horse battery staple",
    "twelve chars",
    "password manager made this",
    "Kä7-leberwurst-Ω",
    "yq7zxxxxxxxxxx",
  ])("%s is accepted", (password) => {
    expect(rejection(password)).toBeUndefined();
  });
});

describe("a password's hash", () => {
  test("is argon2id with the figures of today, and no other password's", async () => {
    const hash = await hashPassword("correct horse battery staple");
    expect(hash).toStartWith("$argon2id$v=19$m=19456,t=2,");
    expect(isOutdated(hash)).toBe(false);
    expect(
      isOutdated(await Bun.password.hash("x", { algorithm: "argon2id", memoryCost: 8192, timeCost: 2 })),
    ).toBe(true);
    expect(await isPasswordOf(hash, "correct horse battery staple")).toBe(true);
    expect(await isPasswordOf(hash, "correct horse battery stapler")).toBe(false);
    expect(await isPasswordOf(undefined, "correct horse battery staple")).toBe(false);
  });

  test("is compared one at a time; of many that wait the rest is sent away", async () => {
    const hash = await hashPassword("correct horse battery staple");
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => isPasswordOf(hash, "wrong")));
    const rejected = results.filter((result) => result.status === "rejected");
    expect(rejected).toHaveLength(40 - 21);
    for (const { reason } of rejected) expect(toHttpError(reason).status).toBe(429);
    expect(await isPasswordOf(hash, "correct horse battery staple")).toBe(true);
  });
});

describe("attempts", () => {
  const getWait = (
    attempts: SignInLimiter,
    now: number,
    address = "203.0.113.7",
    email = "ann@example.com",
  ) => {
    try {
      return attempts.start(address, email, now);
    } catch (error) {
      return Number(toHttpError(error).headers["Retry-After"]);
    }
  };

  test("after five failures wait 1, 2, 4 … 900 seconds", () => {
    const attempts = new SignInLimiter();
    let now = 0;
    const waits: number[] = [];
    for (let failure = 0; failure < 18; failure++) {
      const attempt = getWait(attempts, now);
      if (typeof attempt === "number") throw new Error("It has to wait already.");
      attempt.failed(1);
      const wait = getWait(attempts, now);
      waits.push(typeof wait === "number" ? wait : 0);
      // Far enough apart for the limit per minute, near enough not to be forgotten.
      now += 60_000 + (typeof wait === "number" ? wait * 1_000 : 0);
    }
    expect(waits).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]);
    const attempt = getWait(attempts, now);
    if (typeof attempt === "number") throw new Error("It has to wait still.");
    expect(attempt.succeeded(1)).toBe(18);
    expect(getWait(attempts, now)).not.toBeNumber();
  });

  test("are counted per address and e-mail in any case, and per network of IPv6", () => {
    const attempts = new SignInLimiter();
    for (let failure = 0; failure < 5; failure++) {
      const attempt = getWait(
        attempts,
        0,
        "2001:db8::1",
        failure % 2 ? "ANN@example.com" : " ann@example.com",
      );
      if (typeof attempt === "number") throw new Error("It has to wait already.");
      attempt.failed(undefined);
    }
    expect(getWait(attempts, 0, "2001:db8::2")).toBe(1);
    expect(getWait(attempts, 0, "2001:db8:1::2")).not.toBeNumber();
    expect(getWait(attempts, 0, "2001:db8::2", "bob@example.com")).not.toBeNumber();
  });

  test("are twenty a minute for one address, successes not counted, whatever the e-mail", () => {
    const attempts = new SignInLimiter();
    for (let count = 0; count < 50; count++) {
      const attempt = getWait(attempts, 0);
      if (typeof attempt !== "number") attempt.succeeded(1);
    }
    for (let count = 0; count < 20; count++) {
      const attempt = getWait(attempts, 1_000, "203.0.113.7", `${count}@example.com`);
      expect(attempt).not.toBeNumber();
    }
    expect(getWait(attempts, 2_000, "203.0.113.7", "new@example.com")).toBe(58);
    expect(getWait(attempts, 2_000, "203.0.113.8", "new@example.com")).not.toBeNumber();
    expect(getWait(attempts, 60_001, "203.0.113.7", "new@example.com")).not.toBeNumber();
  });

  test("on several nodes each allows its share", () => {
    const attempts = new SignInLimiter(() => 2);
    const waits: unknown[] = [];
    let now = 0;
    for (let failure = 0; failure < 6; failure++) {
      const attempt = getWait(attempts, now);
      if (typeof attempt === "number") throw new Error("It has to wait already.");
      attempt.failed(1);
      const wait = getWait(attempts, now);
      waits.push(typeof wait === "number" ? wait : 0);
      now += 60_000 + (typeof wait === "number" ? wait * 1_000 : 0);
    }
    // As many as if each failure had another one on the other front.
    expect(waits).toEqual([0, 0, 2, 8, 32, 128]);
    for (let count = 0; count < 10; count++)
      expect(getWait(attempts, now, "203.0.113.9", `${count}@example.com`)).not.toBeNumber();
    expect(getWait(attempts, now, "203.0.113.9", "new@example.com")).toBe(60);
  });

  test("use bounded memory for any number of addresses", () => {
    const attempts = new SignInLimiter();
    for (let n = 0; n < 25_000; n++) {
      const attempt = getWait(attempts, n, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
      if (typeof attempt !== "number") attempt.failed(undefined);
    }
    const { failures, windows } = attempts as unknown as Record<string, Map<unknown, unknown>>;
    expect([failures?.size, windows?.size]).toEqual([10_000, 10_000]);
  });
});
