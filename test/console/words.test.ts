/** The words of the page: what is counted stands in the right number. */

import { expect, test } from "bun:test";
import { counted, number, percent } from "../../src/console/page/lib/format.ts";
import { messages as firstWords } from "../../src/console/page/messages/index.ts";
import { lazyMessages } from "../../src/console/page/messages/later.ts";

const allMessages = { ...firstWords, ...lazyMessages };

/** Every function of words, with its name. */
function functionsIn(part: unknown, name: string): [name: string, say: (...values: unknown[]) => unknown][] {
  if (typeof part === "function") return [[name, part as () => unknown]];
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, inner]) => functionsIn(inner, `${name}.${key}`));
}

/** Every text, with its name; functions are called with `values`. */
function textsIn(part: unknown, name: string, values: unknown[]): [name: string, text: string][] {
  if (typeof part === "string") return [[name, part]];
  if (typeof part === "function") {
    try {
      return textsIn(part(...values), name, values);
    } catch (error) {
      // It takes other values.
      if (error instanceof TypeError) return [];
      throw error;
    }
  }
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, inner]) => textsIn(inner, `${name}.${key}`, values));
}

/** Parts of texts that the terms of the field replace. */
const replacedPhrases = [
  "14 days",
  "Three steps, and",
  "Waiting for it to be asked",
  "Make a flag",
  "Make one",
  "Make the first one",
  "Look after it",
  "Events have arrived before",
  "Nothing yet?",
  "The server believes its address",
  "Refused lately",
  "Whatever arrives from now on",
  "Older than this",
  "Stored events",
  "At any time",
  "Other events of this id",
  "Columns of properties",
  "Key and name",
  "Who gets it",
  "Last asked",
  "On and off",
  "By anybody",
  "Any tag",
  "Choose none",
  "Switch on",
  "Switch off",
  "they decide nothing any more",
  "Clean up",
  "waits for agreement",
  "What the code asks for",
  "asks before each change",
  "A percentage",
  "Some people",
  "The conditions are set on",
  "Try it",
  "Decided by",
  "Served to",
  "Keep the value after sign-in",
  "sets are tried from top",
  "Matched condition set",
  "Roll out to",
  "by share",
  "Spread evenly",
  "hands over with the value",
  "Together",
  "Not counted now",
  "Note (optional)",
  "the history keeps it",
  "What changes",
  "Take theirs",
  "Put mine on top",
  "proposes:",
  "The change is made",
  "What happens",
  "your clock",
  "conditions as in the editor",
  "Made within seconds",
  "Take back",
  "is no longer served",
  "Keep those who get it",
  "Distinct ids",
  "Person properties to assume",
  "known person",
  "not known yet",
  "rolled out to",
  "Times asked",
  "Ask for the flag",
  "The flag as a file",
  "Revert to before this",
  "You may:",
  "No role is named here",
  "Let a role edit",
  "by conditions",
  "fixed list",
  "fixed cohort",
  "Series A",
  "persons",
  "Only where",
  "Broken down by",
  "the period before",
  "who is behind it",
  " in all",
  "in this range matches",
  "came to the end",
  "of the step before",
  "one after the other",
  "with nothing in between",
  "Time taken",
  "By period",
  "Within (days)",
  "Began with",
  "Came back with",
  "stayed away",
  "keeps answers side by side",
  "Ask a first question",
  "Range for all",
  "Each its own",
  "Earlier statements",
  "The statement cannot be run",
  "Nothing can be changed from here",
  "brought back",
  "The server and the command line",
  "Forget the IP",
  "Days of charts begin",
  "Such a change is proposed",
  "The old key counts for",
  "End the old key",
  "Hidden until you give",
  "Your password again",
  "It is good for ten minutes",
  "What it may do",
  "New value",
  "Make key",
  "Copy the key now",
  "One-time link",
  "has not signed in yet",
  "Give this link to the person",
  "Engine up",
  "Odd events",
  "Nothing is wrong",
  "The backup can be restored",
  "Every checksum",
  "no schedule is set",
  "is sent and will be loaded",
  "being sent",
  "Check only",
  "That did not work",
  "There is no such page",
  "Analytics are restarting",
  "What is shown was read",
  "Your session is over",
  "Forgotten?",
  "lacks its secret part",
];
const isOfUnnamed = /\b(?:nobody|somebody|anybody|whoever)\b/i;

/** Texts that were replaced as a whole; inside others these words are in order. */
const replacedTexts = new Set([
  ..."Start Live Persons Everybody everybody nobody never On/off Share Reach Agree Decline times By made".split(
    " ",
  ),
  ..."Rotate Preset Waiting Stores library Doctor fine Send Forget".split(" "),
  "Go on",
  "Set 1",
  "in Pro",
]);

test("no text has a word that a term of the field replaces", () => {
  const texts = [
    ...textsIn(allMessages, "words", [1, 1, 1, 1]),
    ...textsIn(allMessages, "words", ["a", "b", "c", "d"]),
  ];
  expect(texts.length).toBeGreaterThan(900);
  const isReplaced = (text: string) =>
    replacedTexts.has(text) ||
    replacedPhrases.some((phrase) => text.includes(phrase)) ||
    isOfUnnamed.test(text) ||
    / %/.test(text) ||
    /\bset 1\b/i.test(text.replaceAll(/condition set 1/gi, ""));
  // The SQL view is called persons; a dashboard is shared; Live is a switch of the page Events, no page.
  const inOrder = new Set(["words.sql.empty", "words.share.share", "words.live.live"]);
  expect(texts.filter(([name, text]) => !inOrder.has(name) && isReplaced(text))).toEqual([]);
});

/** They begin with somebody's name. */
const ofNames = new Set(["words.flag.pending.proposedBy", "words.settings.removeText"]);

test("one of a kind is no plural, whatever is counted", () => {
  const said = functionsIn(allMessages, "words").flatMap(([name, say]) => {
    try {
      return [[name, String(say(1, 1, 1, 1))] as const];
    } catch (error) {
      // It takes a list, or a text that it takes apart.
      if (error instanceof TypeError) return [];
      throw error;
    }
  });
  expect(said.length).toBeGreaterThan(80);
  // "1 of 1 persons" and "1 events/s" are right.
  const isPlural = /(?<!of )\b1 [a-z][a-z-]*[a-rt-z]s\b(?!\/s)/;
  expect(said.filter(([name, text]) => !ofNames.has(name) && isPlural.test(text))).toEqual([]);
});

test("a count brings its noun in the right number, and nothing is minus zero", () => {
  expect([0, 1, 2].map((count) => counted(count, "person", "people"))).toEqual([
    "0 people",
    "1 person",
    "2 people",
  ]);
  expect(allMessages.explore.lifecycleSummary(1, -0)).toBe("1 person in the last period. Inactive: 0.");
  expect([number(-0.3), number(-2), percent(-0.0001)]).toEqual(["0", "-2", "0%"]);
});
