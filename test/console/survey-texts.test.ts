/** Texts of surveys in the editor: screens, HTML, and lengths of answers. */

import { describe, expect, test } from "bun:test";
import type { SurveyDraft } from "../../src/console/page/model/surveys.ts";
import { getLength, withLength } from "../../src/console/page/model/surveys.ts";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { ownersBrowser } from "./support.ts";

test("a length keeps its message and other rules, and 0 removes it", () => {
  const email = { type: "email" };
  const least = { type: "min_length", value: 3, errorMessage: "Too short" };
  const question = { type: "open" as const, question: "Why?", validation: [email, least] };
  const longer = withLength(question, "min_length", 5);
  expect(longer.validation).toEqual([email, { ...least, value: 5 }]);
  expect(getLength(longer, "min_length")).toBe(5);
  expect(withLength(longer, "min_length", 0).validation).toEqual([email]);
  expect(getLength({ type: "open", question: "Why?" }, "max_length")).toBeUndefined();
});

describe.skipIf(chromiumPath === undefined)("survey texts", () => {
  const owner = ownersBrowser();

  test("an intro screen, HTML and lengths are previewed and stored", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open(400);
    await page.goto("/console/surveys/new");
    await page.getByLabel("Name").fill("Texts");
    const first = page.getByRole("group", { name: "Question 1" });
    await first.getByLabel("Question", { exact: true }).fill("Why?");
    expect(await first.getByText("Description is HTML").count()).toBe(0);
    await first.getByLabel("Description", { exact: true }).fill("<b>All</b><script>x</script>");
    const frame = page.frameLocator("iframe");
    await frame.getByText("<b>All</b>").waitFor();
    await first.getByLabel("Description is HTML").check();
    await frame.locator("b", { hasText: "All" }).waitFor();
    await first.getByText("Allowed: b, i").waitFor();
    await first.getByLabel("Maximum characters").fill("3");
    await first.getByLabel("Minimum characters").fill("5");
    expect(await page.getByLabel("Preview", { exact: true }).locator("option").count()).toBe(1);
    await page.getByLabel("Intro title").fill("Two minutes");
    await page.getByLabel("Intro text", { exact: true }).fill("<i>Please</i>");
    await page.getByLabel("Intro button").fill("Begin");
    await page.getByLabel("Preview", { exact: true }).selectOption("Intro screen");
    await frame.getByText("<i>Please</i>").waitFor();
    await frame.getByText("Begin").waitFor();
    await page.getByLabel("Thank-you title").fill("Thanks");
    await page.getByLabel("Thank-you title").fill("");
    const create = page.getByRole("button", { name: "Create draft" });
    await create.click();
    await page.getByText("Minimum length cannot be greater than maximum length").waitFor();
    await first.getByLabel("Minimum characters").fill("2");
    await create.click();
    await page.getByRole("heading", { level: 1, name: "Texts" }).waitFor();
    const stored = async (): Promise<SurveyDraft> => {
      const { results } = await (await server.api("/api/projects/1/surveys/?search=Texts")).json();
      return results[0];
    };
    const { questions, appearance } = await stored();
    expect(questions).toMatchObject([
      {
        description: "<b>All</b>",
        descriptionContentType: "html",
        validation: [
          { type: "max_length", value: 3 },
          { type: "min_length", value: 2 },
        ],
      },
    ]);
    expect(appearance).toMatchObject({
      displayIntroScreen: true,
      introScreenDescription: "<i>Please</i>",
      introScreenDescriptionContentType: "text",
      displayThankYouMessage: false,
    });
    for (const label of ["Intro title", "Intro text", "Intro button"])
      await page.getByLabel(label, { exact: true }).fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await until(async () => (await stored()).appearance.displayIntroScreen === false, "no intro");
    expect(errors).toEqual([]);
    await context.close();
  }, 60_000);

  test("responses on a narrow screen have whole words", async () => {
    const { server } = owner;
    const questions = ["What is missing?", "Anything else?", "Who told you about us?"].map(
      (question, at) => ({
        type: "open",
        id: `q${at}`,
        question,
      }),
    );
    const body = { name: "Narrow", type: "popover", questions };
    const survey = await (await server.api("/api/projects/1/surveys/", { method: "POST", body })).json();
    const answers = Object.fromEntries(
      questions.map(({ id }) => [`$survey_response_${id}`, "A long answer of many words. ".repeat(9)]),
    );
    const properties = { $survey_id: survey.id, ...answers };
    await server.batch([{ event: "survey sent", distinct_id: "narrow-person", properties }]);
    await server.eventsWhenStored(1);
    const { page, context } = await owner.open();
    await page.setViewportSize({ width: 360, height: 740 });
    const name = page.getByRole("link", { name: "narrow-person" });
    await until(async () => {
      await page.goto(`/console/surveys/${survey.id}?tab=responses`);
      await page.getByRole("heading", { level: 2, name: "Responses" }).waitFor();
      await page.getByText(/No responses yet|Person/).waitFor();
      return await name.isVisible();
    }, "the response is listed");
    const lines = await page.getByRole("columnheader", { name: "Person" }).evaluate((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length;
    });
    expect(lines).toBe(1);
    await context.close();
  }, 60_000);
});
