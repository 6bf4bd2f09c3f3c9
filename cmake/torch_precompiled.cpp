// Compiles torch_precompiled.h.
