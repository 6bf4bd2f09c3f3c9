"""headscope install and uninstall, in a clone of its own where every tool that installs or builds is a stub."""

import shutil
import unittest

from stub_clone import StubClone


class Launcher(StubClone):
    def setUp(self):
        super().setUp()
        # A place that every shell would trip over.
        self.clone = self.clone.rename(self.home / "it's a \"clone\" of $HOME \\ here")
        self.user = self.home / "the user"
        self.user.mkdir()
        self.environment["HOME"] = str(self.user)
        self.launcher = self.user / ".local/bin/headscope"
        self.headscope()  # so that it is built, and what install writes is all that changes

    def tree(self, folder=None):
        folder = folder or self.user
        return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}

    def installed(self, prefix=None, share=None):
        prefix = prefix or self.user / ".local"
        share = share or prefix / "share"
        return [prefix / "bin/headscope", share / "bash-completion/completions/headscope", share / "zsh/site-functions/_headscope",
                share / "fish/vendor_completions.d/headscope.fish"]

    def test_Install_TheLauncherRunsTheProgramFromAnywhere(self):
        code, output, errors = self.headscope("install")
        self.assertEqual((code, output), (0, ""), errors)
        self.assertEqual(self.run_script(self.launcher, "a b", "", "'")[:2], (0, "<a b><><'>"))
        self.assertEqual(sorted(path for path in self.user.rglob("*") if path.is_file()), sorted(self.installed()))

    def test_Install_SaysThatTheFolderIsNotOnPath(self):
        line = f"headscope: {self.launcher.parent} is not on PATH; add to your shell's start file: "
        self.assertEqual(sum(text.startswith(line) for text in self.headscope("install")[2].splitlines()), 1)
        errors = self.headscope("install", PATH=f"{self.bin}:{self.launcher.parent}")[2]
        self.assertNotIn("is not on PATH", errors)

    def test_Uninstall_LeavesWhatWasThereBefore(self):
        (self.user / ".local/share/fish").mkdir(parents=True)
        (self.user / ".local/share/fish/history").write_text("mine\n")
        before = self.tree()
        self.assertEqual(self.headscope("install")[0], 0)
        self.assertEqual(self.headscope("install")[0], 0)  # the second does not forget which folders the first has made
        self.assertNotEqual(self.tree(), before)
        code, output, errors = self.headscope("uninstall")
        self.assertEqual((code, output, errors), (0, "", f"headscope: removed {self.launcher} and its completion\n"))
        self.assertEqual(self.tree(), before)

    def test_Uninstall_KeepsFoldersThatOthersUse(self):
        self.headscope("install")
        (self.launcher.parent / "other").touch()
        self.assertEqual(self.headscope("uninstall")[0], 0)
        self.assertEqual(list(self.tree()), [".local", ".local/bin", ".local/bin/other"])

    def test_Uninstall_TwiceIsNoFailure(self):
        self.headscope("install")
        self.headscope("uninstall")
        code, _, errors = self.headscope("uninstall")
        self.assertEqual((code, errors), (0, f"headscope: nothing to remove: there is no launcher {self.launcher}\n"))

    def test_Uninstall_ThroughTheLauncher(self):
        self.headscope("install")
        self.assertEqual(self.run_script(self.launcher, "uninstall")[0], 0)
        self.assertEqual(self.tree(), {})

    def test_Uninstall_FindsTheFilesWhereInstallPutThem(self):
        data = self.home / "data of mine"
        self.assertEqual(self.headscope("install", XDG_DATA_HOME=data)[0], 0)
        self.assertTrue(all(path.is_file() for path in self.installed(share=data)))
        self.assertEqual(self.headscope("uninstall")[0], 0)  # XDG_DATA_HOME is another one now
        self.assertFalse(data.exists())

    def test_Prefix_IsUsedAndLeft(self):
        for given in (("--prefix", "a prefix"), ("--prefix=a prefix",)):
            process = self.start(self.clone / "headscope", "install", *given, cwd=self.user)
            self.assertEqual((process.wait(60), process.stdout.read()), (0, ""))
            self.assertTrue(all(path.is_file() for path in self.installed(self.user / "a prefix")))
            self.assertEqual(self.run_script(self.user / "a prefix/bin/headscope", "x")[1], "<x>")
            self.assertEqual(self.headscope("uninstall", "--prefix", self.user / "a prefix")[0], 0)
            self.assertEqual(self.tree(), {})

    def test_ForeignFile_IsRefusedAndNothingIsWritten(self):
        for place in self.installed():
            for kind in ("file", "folder", "link"):
                place.parent.mkdir(parents=True)
                if kind == "file":
                    place.write_text("mine\n")
                elif kind == "folder":
                    place.mkdir()
                else:
                    place.symlink_to("/nowhere")
                before = self.tree()
                code, output, errors = self.headscope("install")
                self.assertEqual((code, output), (2, ""))
                self.assertEqual(errors, f"headscope: {place} is there and was not made by headscope install; nothing was changed\n")
                self.assertEqual(self.tree(), before)
                if place == self.launcher:
                    self.assertEqual(self.headscope("uninstall")[0], 2)
                self.assertEqual(self.tree(), before)
                shutil.rmtree(self.user / ".local")

    def test_PlaceThatCannotBeWritten_IsOneLineAndLeavesNothing(self):
        (self.user / "bin").mkdir()
        (self.user / "share").touch()  # no folder
        before = self.tree()
        code, output, errors = self.headscope("install", "--prefix", self.user)
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn("name another place with --prefix DIR", errors)
        self.assertEqual(self.tree(), before)
        code, _, errors = self.headscope("install", HOME="/proc")
        self.assertEqual((code, len(errors.splitlines())), (2, 1), errors)

    def test_MovedCheckout_SaysSoAndIsInstalledAgain(self):
        self.headscope("install")
        old = self.clone
        self.clone = old.rename(self.home / "moved")
        code, output, errors = self.run_script(self.launcher, "x")
        self.assertEqual((code, output), (2, ""))
        self.assertEqual(errors, f"headscope: the checkout {old} is gone; run ./headscope install in its new place\n")
        self.assertEqual(self.headscope("install")[0], 0)
        self.assertEqual(self.run_script(self.launcher, "x")[1], "<x>")
        self.headscope("uninstall")
        self.assertEqual(self.tree(), {})

    def test_MovedCheckout_CanUninstall(self):
        self.headscope("install")
        self.clone = self.clone.rename(self.home / "moved")
        self.assertEqual(self.headscope("uninstall")[0], 0)
        self.assertEqual(self.tree(), {})

    def test_AnotherCheckout_DoesNotRemoveTheLauncher(self):
        self.headscope("install")
        before, first = self.tree(), self.clone
        self.clone = self.home / "another"
        shutil.copytree(first, self.clone, symlinks=True)
        code, _, errors = self.headscope("uninstall")
        self.assertEqual((code, errors), (2, f"headscope: {self.launcher} belongs to the checkout {first}; run uninstall there, "
                                             "or install here first\n"))
        self.assertEqual(self.tree(), before)

    def test_WrongArguments_AreNamed(self):
        for arguments, word in ((("--prefx", "x"), "'--prefx'"), (("--prefix",), "--prefix"), (("--prefix", ""), "--prefix"), (("x",), "'x'")):
            for command in ("install", "uninstall"):
                code, output, errors = self.headscope(command, *arguments)
                self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1))
                self.assertIn(word, errors)
        self.assertEqual(self.tree(), {})

    def test_FailedBuild_InstallsNothing(self):
        shutil.rmtree(self.clone / "build")
        self.assertEqual(self.headscope("install", BREAK_BUILD=1)[0], 1)
        self.assertEqual(self.tree(), {})

    def test_Help_NamesBoth(self):
        output = self.headscope("--help")[1]
        self.assertTrue(output.startswith("<--help>"))
        self.assertIn("\n  install  ", output)
        self.assertIn("\n  uninstall  ", output)
        self.assertIn("--prefix DIR", self.headscope("install", "--help")[1])
        self.assertEqual(self.headscope("train", "--help")[1], "<train><--help>")  # the program's own is not touched


if __name__ == "__main__":
    unittest.main()
