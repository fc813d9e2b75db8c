/** Script of the frame that previews surveys; it has no access to the console around it. */

import { renderSurveysPreview } from "posthog-js/dist/surveys-preview.js";

addEventListener("message", ({ data, source }: MessageEvent<{ survey?: object; page?: number }>) => {
  if (source !== parent || data.survey === undefined) return;
  const parentElement = document.querySelector<HTMLElement>("#survey")!;
  renderSurveysPreview({ survey: data.survey as never, parentElement, previewPageIndex: data.page ?? 0 });
});
