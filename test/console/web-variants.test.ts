/** Variants of web experiments in the editor, and as they are sent. */

import { expect, test } from "bun:test";
import {
  freshTransform,
  getContent,
  readWebVariants,
  toSentVariants,
  withContent,
} from "../../src/console/page/model/web-experiments.ts";

const stored = {
  id: 1,
  name: "Heading",
  feature_flag_key: "heading",
  variants: {
    control: {
      rollout_percentage: 50,
      transforms: [{ selector: "h1", text: "Old" }],
      conditions: { url: "/shop" },
    },
    test: { rollout_percentage: 50, transforms: [{ selector: "h1", html: "<b>New</b>" }], conditions: {} },
  },
};

test("changes of the control that other clients stored are sent unchanged", () => {
  expect(toSentVariants(readWebVariants(stored))).toEqual(stored.variants);
  const { control, ...others } = stored.variants;
  const isEmpty = {
    ...stored,
    variants: { control: { rollout_percentage: control.rollout_percentage }, ...others },
  };
  expect(toSentVariants(readWebVariants(isEmpty))).toEqual(isEmpty.variants);
});

test("a variant whose key equals the control's while it is typed is no control", () => {
  const [control, variant] = readWebVariants(stored);
  expect(control!.isControl).toBe(true);
  expect(toSentVariants([{ ...variant!, key: "control" }])).toEqual({ control: stored.variants.test });
});

test("a typed text outlives the choice of unchanged content, and is not sent", () => {
  const typed = withContent({ ...freshTransform(), selector: "h1" }, "text", "New");
  const unchanged = withContent(typed, "none", getContent(typed));
  expect(withContent(unchanged, "html", getContent(unchanged))).toEqual({ selector: "h1", html: "New" });
  const [, variant] = readWebVariants(stored);
  const sent = toSentVariants([{ ...variant!, transforms: [{ ...unchanged, css: "color: red" }] }]);
  expect(sent.test!.transforms).toEqual([{ selector: "h1", css: "color: red" }]);
});
