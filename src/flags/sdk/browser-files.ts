/**
 * The browser library: the files of the npm package `posthog-js`, unchanged, embedded in the executable.
 *
 * A page with the snippet loads everything from this server and needs no other host. The license of the files is
 * included and served with them.
 */

import arrayFullEs5 from "posthog-js/dist/array.full.es5.js" with { type: "file" };
import arrayFull from "posthog-js/dist/array.full.js" with { type: "file" };
import arrayFullNoExternal from "posthog-js/dist/array.full.no-external.js" with { type: "file" };
import array from "posthog-js/dist/array.js" with { type: "file" };
import arrayNoExternal from "posthog-js/dist/array.no-external.js" with { type: "file" };
import conversations from "posthog-js/dist/conversations.js" with { type: "file" };
import crispChatIntegration from "posthog-js/dist/crisp-chat-integration.js" with { type: "file" };
import deadClicksAutocapture from "posthog-js/dist/dead-clicks-autocapture.js" with { type: "file" };
import elementInference from "posthog-js/dist/element-inference.js" with { type: "file" };
import exceptionAutocapture from "posthog-js/dist/exception-autocapture.js" with { type: "file" };
import intercomIntegration from "posthog-js/dist/intercom-integration.js" with { type: "file" };
import lazyRecorder from "posthog-js/dist/lazy-recorder.js" with { type: "file" };
import loader from "posthog-js/dist/loader.js" with { type: "file" };
import loaderBootstrap from "posthog-js/dist/loader-bootstrap.js" with { type: "file" };
import logs from "posthog-js/dist/logs.js" with { type: "file" };
import posthogRecorder from "posthog-js/dist/posthog-recorder.js" with { type: "file" };
import productTours from "posthog-js/dist/product-tours.js" with { type: "file" };
import productToursPreview from "posthog-js/dist/product-tours-preview.js" with { type: "file" };
import recorder from "posthog-js/dist/recorder.js" with { type: "file" };
import recorderV2 from "posthog-js/dist/recorder-v2.js" with { type: "file" };
import surveys from "posthog-js/dist/surveys.js" with { type: "file" };
import surveysPreview from "posthog-js/dist/surveys-preview.js" with { type: "file" };
import tracingHeaders from "posthog-js/dist/tracing-headers.js" with { type: "file" };
import webVitals from "posthog-js/dist/web-vitals.js" with { type: "file" };
import webVitalsSoftNavs from "posthog-js/dist/web-vitals-soft-navs.js" with { type: "file" };
import webVitalsWithAttribution from "posthog-js/dist/web-vitals-with-attribution.js" with { type: "file" };
import webVitalsWithAttributionSoftNavs from "posthog-js/dist/web-vitals-with-attribution-soft-navs.js" with {
  type: "file",
};
import license from "posthog-js/LICENSE" with { type: "file" };
import packageJson from "posthog-js/package.json";

/** The version of the files. */
export const browserLibraryVersion: string = packageJson.version;

// The compiler types some of these as modules; imported as files they are paths.
const paths: Record<string, unknown> = {
  "array.js": array,
  "array.full.js": arrayFull,
  "array.full.es5.js": arrayFullEs5,
  "array.no-external.js": arrayNoExternal,
  "array.full.no-external.js": arrayFullNoExternal,
  "conversations.js": conversations,
  "crisp-chat-integration.js": crispChatIntegration,
  "dead-clicks-autocapture.js": deadClicksAutocapture,
  "element-inference.js": elementInference,
  "exception-autocapture.js": exceptionAutocapture,
  "intercom-integration.js": intercomIntegration,
  "lazy-recorder.js": lazyRecorder,
  "loader.js": loader,
  "loader-bootstrap.js": loaderBootstrap,
  "logs.js": logs,
  "posthog-recorder.js": posthogRecorder,
  "product-tours.js": productTours,
  "product-tours-preview.js": productToursPreview,
  "recorder.js": recorder,
  "recorder-v2.js": recorderV2,
  "surveys.js": surveys,
  "surveys-preview.js": surveysPreview,
  "tracing-headers.js": tracingHeaders,
  "web-vitals.js": webVitals,
  "web-vitals-soft-navs.js": webVitalsSoftNavs,
  "web-vitals-with-attribution.js": webVitalsWithAttribution,
  "web-vitals-with-attribution-soft-navs.js": webVitalsWithAttributionSoftNavs,
  "LICENSE.txt": license,
};

/** Path of each file, by the name that pages request. */
export const browserFiles = new Map(Object.entries(paths) as [string, string][]);
