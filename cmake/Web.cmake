# The web code of a report: TypeScript and style of web/, bundled by esbuild into one script, become the bytes that src/page writes
# into every page (page/web_files.h). d3-array comes from Debian and lies beside no package.json of ours: NODE_PATH names its folder.
find_program(HEADSCOPE_ESBUILD esbuild REQUIRED DOC "Bundles the web code")
find_path(HEADSCOPE_NODE_MODULES d3-array/package.json PATH_SUFFIXES share/nodejs REQUIRED DOC "Folder that holds d3-array")
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/web/*.ts" "${CMAKE_SOURCE_DIR}/web/*.css")
list(FILTER web_sources EXCLUDE REGEX "/web/tests/")
set(web "${CMAKE_BINARY_DIR}/web")
add_custom_command(OUTPUT "${web}/report.js" "${web}/style.css" DEPENDS ${web_sources}
  COMMAND "${CMAKE_COMMAND}" -E env "NODE_PATH=${HEADSCOPE_NODE_MODULES}" "${HEADSCOPE_ESBUILD}" "${CMAKE_SOURCE_DIR}/web/report.ts"
    "${CMAKE_SOURCE_DIR}/web/style.css" --bundle --minify --target=es2020 --format=iife --charset=utf8 --log-level=warning "--outdir=${web}"
  COMMENT "Bundling the web code" VERBATIM)
add_custom_command(OUTPUT "${web}/web_files.cpp" DEPENDS "${web}/report.js" "${web}/style.css" "${CMAKE_SOURCE_DIR}/cmake/WebFiles.cmake"
  COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${web}" -P "${CMAKE_SOURCE_DIR}/cmake/WebFiles.cmake" COMMENT "Web code as bytes" VERBATIM)
target_sources(headscope_page PRIVATE "${web}/web_files.cpp")
