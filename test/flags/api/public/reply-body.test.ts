/** The fast body of an answer says the same as the plain one. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { evaluate } from "../../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../../src/flags/evaluate/flag-set.ts";
import { type ReplyShape, renderFlags } from "../../../../src/flags/sdk/flags-reply.ts";
import { replyBody } from "../../../../src/flags/sdk/reply-body.ts";
import { flag, person, requestFor, when } from "../../make.ts";
import { anyProject } from "../../random-flags.ts";

const replyText = (...args: Parameters<typeof replyBody>) => new TextDecoder().decode(replyBody(...args));
const stamp = { requestId: "0192d6a1-7b1e-7c3a-9d4f-aabbccddeeff", evaluatedAt: new Date(1_795_000_000_000) };
const shapes: ReplyShape[] = ["details", "values", "on", "keys"];

test("for any project, any request, and again for the next request", () => {
  fc.assert(
    fc.property(anyProject, (project) => {
      const set = compileFlagSet(project.flags, project.cohorts, project.groupTypes);
      for (const request of [...project.requests, ...project.requests]) {
        const evaluation = evaluate(set, request);
        for (const shape of shapes) {
          const plain = renderFlags(evaluation, shape, stamp);
          const text = replyText(evaluation, shape, stamp, undefined);
          expect(JSON.parse(text)).toEqual(plain);
          const withConfig = replyText(evaluation, shape, stamp, '"token":"x","a":{"b":[]}');
          expect(JSON.parse(withConfig)).toEqual({ ...plain, token: "x", a: { b: [] } });
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("parts of one set are not used for another, whose payload is different", () => {
  const text = (payload: string) => {
    const filters = { ...when([person("a", "is_not_set", "")]), payloads: { true: payload } };
    const set = compileFlagSet([flag(1, 'k"ey', filters)], [], []);
    return replyText(evaluate(set, requestFor("x")), "details", stamp, undefined);
  };
  expect(JSON.parse(text("1")).flags['k"ey'].metadata.payload).toBe("1");
  expect(JSON.parse(text("2")).flags['k"ey'].metadata.payload).toBe("2");
});

test("an answer longer than any before, and short ones after it", () => {
  const answer = (count: number) => {
    const flags = Array.from({ length: count }, (_, i) => flag(i + 1, `flag-${i}-ä€😀`, when([])));
    const evaluation = evaluate(compileFlagSet(flags, [], []), requestFor("x"));
    expect(JSON.parse(replyText(evaluation, "details", stamp, undefined))).toEqual(
      renderFlags(evaluation, "details", stamp),
    );
  };
  for (const count of [0, 1, 2_000, 3, 0]) answer(count);
});
