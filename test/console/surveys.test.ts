/** Surveys: written with a preview, launched, answered, read and deleted. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { looksRight, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("surveys", () => {
  const owner = ownersBrowser();

  test("a survey is written with a preview, launched, read and deleted", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open(400);
    await page.goto("/console/surveys");
    await page.getByText("No surveys yet").waitFor();
    await page.keyboard.press("n");
    await page.getByRole("heading", { level: 1, name: "New survey" }).waitFor();
    await page.getByLabel("Name").fill("<i>Feedback</i>");
    const first = page.getByRole("group", { name: "Question 1" });
    await first.getByLabel("Question", { exact: true }).fill("How likely <b>are you</b>?");
    await first.getByLabel("Answer").selectOption("Rating");
    await first.getByLabel("Scale").selectOption("0 to 10");
    await page.getByRole("button", { name: "Add question" }).click();
    const second = page.getByRole("group", { name: "Question 2" });
    await page.waitForFunction(
      () =>
        document.activeElement?.closest("fieldset")?.querySelector("legend")?.textContent === "Question 2",
    );
    await second.getByLabel("Question", { exact: true }).fill("Which plan?");
    await second.getByLabel("Answer").selectOption("Single choice");
    await second.getByLabel("Choices, one per line").fill("Free\nPaid");
    await first.getByLabel("Next").selectOption("Depends on the answer");
    await first.getByLabel("After 0 to 6").selectOption("End of the survey");
    await page.getByLabel("Maximum responses").fill("100");

    const frame = page.frameLocator("iframe");
    await frame.getByText("How likely <b>are you</b>?").waitFor();
    await page.getByLabel("Preview", { exact: true }).selectOption("Question 2");
    await frame.getByText("Paid").waitFor();
    await looksRight(page);
    await page.getByRole("button", { name: "Create draft" }).click();

    await page.getByRole("heading", { level: 1, name: "<i>Feedback</i>" }).waitFor();
    const { results } = await (await server.api("/api/projects/1/surveys/")).json();
    const stored = results[0];
    expect(stored).toMatchObject({ status: "draft", responses_limit: 100 });
    expect(stored.questions).toMatchObject([
      { type: "rating", scale: 10, branching: { responseValues: { detractors: "end" } } },
      { type: "single_choice", choices: ["Free", "Paid"] },
    ]);
    // A branch follows the question that it names.
    const moved = page.getByRole("group", { name: "Question 1" });
    await moved.getByLabel("After 0 to 6").selectOption("Question 2");
    await moved.getByRole("button", { name: "Move question 1 down" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Survey saved.").waitFor();
    const saved = await (await server.api(`/api/projects/1/surveys/${stored.id}/`)).json();
    expect(saved.questions[1].branching.responseValues).toEqual({ detractors: 0 });

    await page.getByRole("button", { name: "Launch" }).click();
    await page.getByText("Survey launched.").waitFor();
    const rating = stored.questions[0].id as string;
    const properties = { $survey_id: stored.id, [`$survey_response_${rating}`]: 10 };
    await server.batch([
      { event: "survey shown", distinct_id: "kim", properties },
      { event: "survey sent", distinct_id: "kim", properties },
    ]);
    await server.eventsWhenStored(2);
    await page.getByRole("tab", { name: "Results" }).click();
    await until(async () => {
      await page.reload();
      await page.getByText(/^Shown: /).waitFor();
      return await page.getByText("Net promoter score 100").isVisible();
    }, "the answer is counted");
    await looksRight(page);
    await page.getByRole("tab", { name: "Responses" }).click();
    await page.getByRole("link", { name: "kim" }).waitFor();
    const file = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV" }).click();
    expect((await file).suggestedFilename()).toBe("responses.csv");
    await looksRight(page);
    const more = async (action: string) => {
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("button", { name: action }).click();
    };
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByTitle("Stop the survey first.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Survey stopped.").waitFor();
    await more("Archive");
    await page.getByText("Survey archived.").waitFor();
    await more("Restore");
    await more("Duplicate");
    await page.getByRole("heading", { level: 1, name: "Copy of <i>Feedback</i>" }).waitFor();
    const { results: both } = await (await server.api("/api/projects/1/surveys/")).json();
    expect(both[0]).toMatchObject({ status: "draft", questions: both[1].questions });
    await more("Delete survey");
    await page.getByRole("dialog").getByRole("button", { name: "Delete survey" }).click();
    await page.getByText("Survey Copy of <i>Feedback</i> deleted.").waitFor();

    await page.goto("/console/surveys?status=running");
    await page.getByText("No survey matches.").waitFor();
    await page.goto("/console/surveys");
    const row = page.getByRole("table", { name: "Surveys" }).getByRole("row").nth(1);
    const responses = row.getByRole("cell").nth(2).filter({ hasText: /^1$/ });
    await responses.waitFor();
    await looksRight(page);
    const remove = async () => {
      await page.getByRole("link", { name: "<i>Feedback</i>" }).click();
      await more("Delete survey");
      await page.getByRole("dialog").getByRole("button", { name: "Delete survey" }).click();
      await page.getByText("No surveys yet").waitFor();
    };
    await remove();
    // With its responses.
    await page.getByRole("button", { name: "Undo" }).click();
    await responses.waitFor();
    const restored = await (await server.api(`/api/projects/1/surveys/${stored.id}/`)).json();
    expect(restored).toMatchObject({ status: "completed", responses_limit: 100 });
    await remove();
    expect(errors).toEqual([]);
    await context.close();
  });

  test("an unsaved draft outlives its page until it is saved or discarded", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/surveys/new");
    const question = page.getByRole("group", { name: "Question 1" }).getByLabel("Question", { exact: true });
    await question.fill("Typed for a long time");
    await page.getByRole("link", { name: "Surveys", exact: true }).first().click();
    await page.getByRole("link", { name: "New survey" }).click();
    expect(await question.inputValue()).toBe("Typed for a long time");
    await page.reload();
    await question.waitFor();
    expect(await question.inputValue()).toBe("Typed for a long time");
    await page.getByText("Unsaved changes").waitFor();
    await page.getByRole("button", { name: "Discard" }).click();
    expect(await question.inputValue()).toBe("");
    await page.getByRole("link", { name: "Surveys", exact: true }).first().click();
    await page.getByRole("link", { name: "New survey" }).click();
    expect(await question.inputValue()).toBe("");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("an unsaved draft says that the survey was changed, and ends with the session", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open();
    const created = await server.api("/api/projects/1/surveys/", {
      method: "POST",
      body: { name: "Shared", type: "popover", questions: [{ type: "open", question: "Why?" }] },
    });
    const path = `/api/projects/1/surveys/${(await created.json()).id}/`;
    await page.goto("/console/surveys");
    const open = () => page.getByRole("link", { name: "Shared" }).click();
    const leave = () => page.getByRole("link", { name: "Surveys", exact: true }).first().click();
    const description = page.getByLabel("Internal description");
    await open();
    await description.fill("Mine");
    await leave();
    await server.api(path, { method: "PATCH", body: { description: "Theirs" } });
    await open();
    await page.getByText("This survey was changed by someone else.").waitFor();
    expect(await description.inputValue()).toBe("Mine");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Unsaved changes").waitFor({ state: "detached" });
    expect(await page.getByText("This survey was changed by someone else.").count()).toBe(0);
    expect((await (await server.api(path)).json()).description).toBe("Mine");

    // Leaving the console asks while there is a draft, also on other pages.
    await description.fill("Mine again");
    await leave();
    const asks = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
    expect(await asks()).toBe(true);
    // The tests share one session: it stays on the server.
    await page.route("**/api/session/", (route) =>
      route.request().method() === "DELETE" ? route.fulfill({ status: 204 }) : route.continue(),
    );
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await asks()).toBe(false);
    expect(errors).toEqual([]);
    await context.close();
    await server.api(path, { method: "DELETE" });
  });

  test("the audience, and the button that opens the survey", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open();
    const variants = ["control", "test"].map((key) => ({ key, rollout_percentage: 50 }));
    const filters = { groups: [{ properties: [], rollout_percentage: 100 }], multivariate: { variants } };
    await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: "linked", filters } });
    const event = {
      name: "order paid",
      propertyFilters: { amount: { values: ["10"], operator: "gt" } },
    };
    const created = await server.api("/api/projects/1/surveys/", {
      method: "POST",
      body: {
        name: "Audience",
        type: "popover",
        questions: [{ type: "open", question: "Why?" }],
        conditions: { events: { values: [event] }, actions: null },
      },
    });
    const { id } = await created.json();
    await page.goto(`/console/surveys/${id}?tab=edit`);
    await page.getByLabel("Position").selectOption("Top center");
    await page.getByLabel("Delay").fill("3");
    await page.getByLabel("Type").selectOption("Feedback button");
    await page.getByLabel("Label of the tab").fill("Tell us");
    await page.getByRole("button", { name: "Add event" }).click();
    await page.getByLabel("Event 2", { exact: true }).fill("signed up");
    await page.getByLabel("Show after every trigger event").check();
    await page.getByLabel("Mobile").check();
    await page.getByLabel("Only people with the flag").selectOption("linked");
    await page.getByLabel("Variant of the flag").selectOption("test");
    await looksRight(page);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Survey saved.").waitFor();
    const read = async () => await (await server.api(`/api/projects/1/surveys/${id}/`)).json();
    const saved = await read();
    expect(saved.conditions).toMatchObject({
      events: { values: [event, { name: "signed up" }], repeatedActivation: true },
      deviceTypes: ["Mobile"],
      linkedFlagVariant: "test",
    });
    expect(saved.appearance).toMatchObject({
      widgetType: "tab",
      widgetLabel: "Tell us",
      position: "top_center",
      surveyPopupDelaySeconds: 3,
    });
    await page.getByLabel("Trigger", { exact: true }).selectOption("An element of the page");
    await page.getByLabel("CSS selector of the element").fill("#feedback");
    await page.getByLabel("Mobile").uncheck();
    await page.getByLabel("Only people with the flag").selectOption("Anyone");
    await page.getByRole("button", { name: "Remove event 1" }).click();
    await page.getByRole("button", { name: "Remove event 1" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await until(async () => (await read()).appearance.widgetSelector === "#feedback", "the survey is saved");
    const { conditions } = await read();
    expect(conditions.events).toBeNull();
    expect(Object.keys(conditions)).not.toContain("deviceTypes");
    expect(Object.keys(conditions)).not.toContain("linkedFlagVariant");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("questions are moved by mouse, by arrow keys and by buttons", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open();
    const created = await server.api("/api/projects/1/surveys/", {
      method: "POST",
      body: {
        name: "Order",
        type: "popover",
        questions: ["One", "Two", "Three", "Four"].map((question) => ({ type: "open", question })),
      },
    });
    const { id } = await created.json();
    await page.goto(`/console/surveys/${id}?tab=edit`);
    const getOrder = () => page.getByLabel("Question", { exact: true }).evaluateAll(readValues);
    const getGrip = (place: number) =>
      page.getByRole("button", { name: `Move question ${place}`, exact: true });
    const getMiddle = async (place: number) => {
      const { x, y, width, height } = (await getGrip(place).boundingBox())!;
      return { x: x + width / 2, y: y + height / 2 };
    };
    const press = async (place: number) => {
      await getGrip(place).scrollIntoViewIfNeeded();
      const { x, y } = await getMiddle(place);
      await page.mouse.move(x, y);
      await page.mouse.down();
      // The first moves collapse the questions.
      await page.mouse.move(x, y + 6);
      await page.locator(".question-list.dragging").waitFor();
      return x;
    };
    const x = await press(1);
    expect(Math.abs((await getMiddle(1)).y - (await getMiddle(2)).y)).toBeLessThan(90);
    await looksRight(page);
    await page.mouse.move(x, (await getMiddle(3)).y, { steps: 5 });
    await page.mouse.up();
    expect(await getOrder()).toEqual(["Two", "Three", "One", "Four"]);
    expect(await page.locator(".question-list.dragging").count()).toBe(0);
    expect(await getGrip(3).evaluate((grip) => grip === document.activeElement)).toBe(true);
    await page.frameLocator("iframe").getByText("Two").waitFor();

    // From the end to the start, past the edge of the list.
    await press(4);
    await page.mouse.move(x, (await getMiddle(1)).y - 200, { steps: 5 });
    await page.mouse.up();
    expect(await getOrder()).toEqual(["Four", "Two", "Three", "One"]);

    await press(2);
    await page.mouse.move(x, (await getMiddle(4)).y, { steps: 5 });
    await page.keyboard.press("Escape");
    await page.mouse.up();
    expect(await getOrder()).toEqual(["Four", "Two", "Three", "One"]);

    await getGrip(1).press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByText("Question 3 of 4", { exact: true }).waitFor({ state: "attached" });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    expect(await getOrder()).toEqual(["Two", "Three", "One", "Four"]);
    await page.getByRole("button", { name: "Move question 3 up" }).press("Enter");
    await page.keyboard.press("Enter");
    expect(await getOrder()).toEqual(["One", "Two", "Three", "Four"]);
    expect(await getGrip(1).evaluate((grip) => grip === document.activeElement)).toBe(true);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Survey saved.").waitFor();

    await getGrip(2).press("ArrowUp");
    await page.getByRole("button", { name: "Save" }).click();
    await until(async () => {
      const saved = await (await server.api(`/api/projects/1/surveys/${id}/`)).json();
      return saved.questions[0].question === "Two";
    }, "the order is stored");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("texts are translated, previewed in their language and stored", async () => {
    const { server } = owner;
    const { page, context, errors } = await owner.open();
    await page.goto("/console/surveys/new");
    await page.getByLabel("Name").fill("Translated");
    const question = page.getByRole("group", { name: "Question 1" });
    await question.getByLabel("Question", { exact: true }).fill("Which plan?");
    await question.getByLabel("Answer").selectOption("Single choice");
    await question.getByLabel("Choices, one per line").fill("Free\nPaid");
    await page.getByLabel("Thank-you title").fill("Thanks!");
    await page.getByLabel("Add language").selectOption("German (de)");
    await page.getByText("Empty fields show the original text.").waitFor();
    await question.getByLabel("Question", { exact: true }).fill("Welcher <b>Tarif</b>?");
    await question.getByLabel("Choice 2").fill("Bezahlt");
    await page.getByLabel("Thank-you title").fill("Danke!");
    const frame = page.frameLocator("iframe");
    await frame.getByText("Welcher <b>Tarif</b>?").waitFor();
    await frame.getByText("Bezahlt").waitFor();
    await frame.getByText("Free").waitFor();
    await looksRight(page);
    await page.getByLabel("Preview", { exact: true }).selectOption("Thank-you message");
    await frame.getByText("Danke!").waitFor();
    await page.getByLabel("Language of the texts").selectOption("Original");
    await frame.getByText("Thanks!").waitFor();
    // A translation follows its choice.
    await question.getByLabel("Choices, one per line").fill("Trial\nFree\nPaid");
    await page.getByLabel("Language of the texts").selectOption("German (de)");
    expect(await question.getByLabel("Choice 3").inputValue()).toBe("Bezahlt");
    await page.getByLabel("Add language").selectOption("French (fr)");
    await page.getByRole("button", { name: "Remove French (fr)" }).click();
    await page.getByRole("button", { name: "Create draft" }).click();
    await page.getByRole("heading", { level: 1, name: "Translated" }).waitFor();
    const { results } = await (await server.api("/api/projects/1/surveys/?search=Translated")).json();
    expect(results[0].translations).toEqual({ de: { thankYouMessageHeader: "Danke!" } });
    expect(results[0].questions[0].translations).toEqual({
      de: { question: "Welcher <b>Tarif</b>?", choices: ["Trial", "Free", "Bezahlt"] },
    });
    await page.goto(`/console/surveys/${results[0].id}?tab=edit&language=de`);
    await question.getByLabel("Question", { exact: true }).fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Survey saved.").waitFor();
    // The language is part of the address.
    await page.getByRole("button", { name: "Remove German (de)" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await until(async () => {
      const saved = await (await server.api(`/api/projects/1/surveys/${results[0].id}/`)).json();
      return saved.translations === null;
    }, "the language is removed");
    expect(errors).toEqual([]);
    await context.close();
  });
});

const readValues = (fields: (HTMLElement | SVGElement)[]): string[] =>
  fields.map((field) => (field as HTMLInputElement).value);
