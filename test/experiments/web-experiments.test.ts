/** Web experiments: their flag, what visitors get, and what is rejected. Source: contract, experiments 1.6. */

import { expect, test } from "bun:test";
import { publicWebExperiments } from "../../src/experiments/web-experiments.ts";
import { TestServer } from "../support/management-server.ts";

const path = "/api/projects/1/web_experiments/";
const change = (more: object = {}) => ({ selector: "#buy", text: "Buy <now>", ...more });
const variants = (transforms: unknown = [change()]) => ({
  control: { rollout_percentage: 50 },
  test: { rollout_percentage: 50, transforms },
});

test("a web experiment is public while it runs; its shares are those of its flag", async () => {
  using server = new TestServer();
  const shown = () => publicWebExperiments(server.metadata.db, 1);
  const created = await server.ask("POST", path, { body: { name: "Buy Now", variants: variants() } });
  expect(created.status).toBe(201);
  const { id, feature_flag_key: key } = created.body;
  expect(key).toMatch(/^buy-now-web-experiment-feature-[0-9a-f]{10}$/);
  expect(created.body.variants).toEqual(variants());
  const { body: experiment } = await server.ask("GET", `/api/projects/1/experiments/${id}/`);
  expect(experiment).toMatchObject({
    type: "web",
    status: "draft",
    feature_flag_key: key,
    feature_flag: { active: false },
  });
  expect(shown()).toEqual([]);
  const other = {
    control: { rollout_percentage: 90 },
    test: { rollout_percentage: 10, transforms: [change()] },
  };
  expect((await server.ask("PATCH", `${path}${id}/`, { body: { variants: other } })).body.variants).toEqual(
    other,
  );
  await server.ask("POST", `/api/projects/1/experiments/${id}/launch/`, { body: {} });
  expect(shown()).toMatchObject([{ id, name: "Buy Now", feature_flag_key: key, variants: other }]);
  // posthog-js does not apply `text`.
  expect(shown()[0]!.variants).toMatchObject({ test: { transforms: [{ html: "Buy &lt;now&gt;" }] } });
  const late = await server.ask("PATCH", `${path}${id}/`, { body: { variants: variants() } });
  expect([late.status, late.body.code]).toEqual([400, "experiment_running"]);
  const text = { ...other, test: { ...other.test, transforms: [change({ text: "Order" })] } };
  expect((await server.ask("PATCH", `${path}${id}/`, { body: { variants: text } })).status).toBe(200);
  expect(JSON.stringify(shown())).toContain("Order");
  await server.ask("POST", `/api/projects/1/experiments/${id}/pause/`, { body: {} });
  expect(shown()).toEqual([]);
  expect((await server.ask("GET", path)).body.count).toBe(1);
  expect((await server.ask("DELETE", `${path}${id}/`)).status).toBe(204);
  expect((await server.ask("GET", `${path}${id}/`)).status).toBe(404);
});

test("an experiment of the type web without changes is a web experiment; its variants are those of the flag", async () => {
  using server = new TestServer();
  const experiments = "/api/projects/1/experiments/";
  const { body: created } = await server.ask("POST", experiments, { body: { name: "Later", type: "web" } });
  const { body } = await server.ask("GET", `${path}${created.id}/`);
  expect(body.variants).toEqual({ control: { rollout_percentage: 50 }, test: { rollout_percentage: 50 } });
  await server.ask("POST", `${experiments}${created.id}/launch/`, { body: {} });
  expect(publicWebExperiments(server.metadata.db, 1)).toEqual([]);
  expect((await server.ask("PATCH", `${path}${created.id}/`, { body: { name: "Now" } })).status).toBe(200);
  await server.ask("PATCH", `${path}${created.id}/`, { body: { variants: variants() } });
  expect(publicWebExperiments(server.metadata.db, 1)).toMatchObject([{ name: "Now" }]);
  await server.ask("POST", `${experiments}${created.id}/reset/`, { body: {} });
  const renamed = ["control", "green"].map((key) => ({ key, rollout_percentage: 50 }));
  await server.ask("PATCH", `${experiments}${created.id}/`, {
    body: { parameters: { feature_flag_variants: renamed } },
  });
  const { body: after } = await server.ask("GET", `${path}${created.id}/`);
  expect(Object.keys(after.variants)).toEqual(["control", "green"]);
  const { body: product } = await server.ask("POST", experiments, { body: { name: "Code" } });
  expect((await server.ask("GET", `${path}${product.id}/`)).status).toBe(404);
});

test("a duplicate of a web experiment changes the same elements, with its own flag", async () => {
  using server = new TestServer();
  const { body: created } = await server.ask("POST", path, { body: { name: "Buy", variants: variants() } });
  const { status, body } = await server.ask("POST", `/api/projects/1/experiments/${created.id}/duplicate/`, {
    body: { name: "Again", feature_flag_key: "again" },
  });
  expect([status, body.type]).toEqual([201, "web"]);
  const { body: copy } = await server.ask("GET", `${path}${body.id}/`);
  expect(copy).toMatchObject({ feature_flag_key: "again", variants: variants() });
});

test("HTML is sanitized, and members that are not known are dropped", async () => {
  using server = new TestServer();
  const hostile = change({
    html: "<b>New</b><img src=x onerror=alert(1)><script>alert(1)</script>",
    css: "color: red",
    attributes: [
      { name: "onclick", value: "alert(1)" },
      { name: "style", value: "x" },
      { name: "href", value: "javascript:alert(1)" },
      { name: "html", value: "<script>alert(1)</script>" },
    ],
    outerHTML: "<script>alert(1)</script>",
  });
  const { body } = await server.ask("POST", path, { body: { name: "x", variants: variants([hostile]) } });
  expect(body.variants.test.transforms).toEqual([change({ html: "<b>New</b>", css: "color: red" })]);
  const { body: patched } = await server.ask("PATCH", `/api/projects/1/experiments/${body.id}/`, {
    body: { parameters: { web_variants: hostile, variants: hostile } },
  });
  expect(patched.type).toBe("web");
  const { body: after } = await server.ask("GET", `${path}${body.id}/`);
  expect(after.variants.test.transforms).toEqual(body.variants.test.transforms);
});

test("pictures and safe attributes are kept, for versions of posthog-js that apply them", async () => {
  using server = new TestServer();
  const safe = {
    selector: "img",
    imgUrl: "https://shop.example/sale.png",
    attributes: [
      { name: "alt", value: "Sale" },
      { name: "href", value: "https://shop.example/" },
    ],
  };
  const { status, body } = await server.ask("POST", path, {
    body: { name: "x", variants: variants([safe]) },
  });
  expect([status, body.variants.test.transforms]).toEqual([201, [safe]]);
});

test("visitors get a list of changes for a variant that only the flag has", async () => {
  using server = new TestServer();
  const { body } = await server.ask("POST", path, { body: { name: "x", variants: variants() } });
  const { body: experiment } = await server.ask("GET", `/api/projects/1/experiments/${body.id}/`);
  await server.ask("POST", `/api/projects/1/experiments/${body.id}/launch/`, { body: {} });
  const three = ["control", "test", "third"].map((key, at) => ({
    key,
    rollout_percentage: at === 0 ? 34 : 33,
  }));
  await server.ask("PATCH", `/api/projects/1/feature_flags/${experiment.feature_flag.id}/`, {
    body: { filters: { ...experiment.feature_flag.filters, multivariate: { variants: three } } },
  });
  expect(publicWebExperiments(server.metadata.db, 1)).toMatchObject([
    { variants: { control: { rollout_percentage: 34 }, third: { transforms: [] } } },
  ]);
});

test.each([
  ["no control", { test: variants().test }, "should contain a control variant"],
  ["no share", { control: {} }, "does not have any rollout percentage"],
  ["no transforms", { ...variants(), test: { rollout_percentage: 50 } }, "any element transforms"],
  ["no selector", variants([{ text: "x" }]), "does not have a valid selector"],
  ["nothing to change", variants([{ selector: "#x" }]), "must have text, html, css, imgUrl or safe"],
  [
    "only an attribute that runs a script",
    variants([{ selector: "#x", attributes: [{ name: "onclick", value: "x" }] }]),
    "must have text, html, css, imgUrl or safe attributes",
  ],
  ["a picture by script", variants([change({ imgUrl: "javascript:x" })]), "imgUrl must be a URL"],
  ["attributes that are no list", variants([change({ attributes: {} })]), "attributes must be a list"],
  [
    "CSS that loads",
    variants([change({ css: "background: URL (//e.example)" })]),
    "css must not load anything",
  ],
  [
    "CSS with an escape",
    variants([change({ css: "background: u\\72l(//e)" })]),
    "css must not load anything",
  ],
  ["an import", variants([change({ css: "@import 'x'" })]), "css must not load anything"],
  ["many transforms", variants(Array(101).fill(change())), "the maximum is 100"],
  ["one variant", { control: { rollout_percentage: 100 } }, "2 to 20 variants"],
])("rejects %s", async (_, sent, detail) => {
  using server = new TestServer();
  const { status, body } = await server.ask("POST", path, { body: { name: "x", variants: sent } });
  expect([status, body.detail]).toEqual([400, expect.stringContaining(detail)]);
});
